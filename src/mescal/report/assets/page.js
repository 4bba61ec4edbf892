"use strict";
// What the page does beside being there: values under the pointer, series that hide, tables that sort. Text is only ever set
// as text, never as markup.
(() => {
  const hidden = new Set();

  const make = (name, attributes = {}, parent = null) => {
    const drawn = name === "g" || name === "line" || name === "circle";
    const element = drawn ? document.createElementNS(parent.namespaceURI, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (parent) parent.append(element);
    return element;
  };

  const number = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    const text = size >= 1e-4 && size < 1e5 ? String(Number(value.toPrecision(3))) : value.toExponential(2).replace("e+", "e");
    return text.replaceAll("-", "\u2212");
  };

  const count = (value) => {
    for (const [size, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (value >= size) return Number((value / size).toPrecision(3)) + letter;
    return String(Number(value.toPrecision(3)));
  };

  // The last point whose work is not larger: curves are steps.
  const at = (points, work) => {
    let low = 0, high = points.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle][0] <= work) low = middle + 1; else high = middle;
    }
    return low ? points[low - 1] : null;
  };

  class Panel {
    constructor(figure) {
      this.figure = figure;
      this.svg = figure.querySelector("svg");
      this.data = JSON.parse(figure.querySelector("script.points").textContent);
      this.layer = make("g", { class: "hover", visibility: "hidden" }, this.svg);
      const { top, bottom } = this.data.box;
      this.line = make("line", { y1: top, y2: bottom }, this.layer);
      this.dots = this.data.series.map((one) => make("circle", { r: 4, class: "c" + one.look }, this.layer));
      this.meaning = figure.querySelector("figcaption span");
      this.values = make("span", { class: "values", hidden: "" }, figure.querySelector("figcaption"));
      this.tip = make("div", { class: "tip", role: "status", hidden: "" }, figure);
    }

    get ends() { return this.data.work; }

    position(work) {
      const { left, right } = this.data.box;
      const share = (Math.log(work) - this.ends[0]) / (this.ends[1] - this.ends[0]);
      return left + (right - left) * Math.min(1, Math.max(0, share));
    }

    workAt(clientX) {
      const frame = this.svg.getBoundingClientRect();
      const { left, right, width } = this.data.box;
      const x = ((clientX - frame.left) / frame.width) * width;
      const share = Math.min(1, Math.max(0, (x - left) / (right - left)));
      return Math.exp(this.ends[0] + share * (this.ends[1] - this.ends[0]));
    }

    works() {
      const shown = this.data.series.filter((one) => !hidden.has(one.name));
      return [...new Set(shown.flatMap((one) => one.points.map((point) => point[0])))].sort((a, b) => a - b);
    }

    // The crosshair and, in place of the caption's second line, the values; the whole story where the pointer is.
    show(work, here) {
      const x = this.position(work);
      const rows = [];
      this.data.series.forEach((one, index) => {
        const point = hidden.has(one.name) ? null : at(one.points, work);
        const dot = this.dots[index];
        dot.setAttribute("visibility", point ? "inherit" : "hidden");
        if (!point) return;
        dot.setAttribute("cx", x);
        dot.setAttribute("cy", point[4]);
        rows.push([one, point]);
      });
      this.line.setAttribute("x1", x);
      this.line.setAttribute("x2", x);
      this.layer.setAttribute("visibility", "visible");
      this.values.replaceChildren();
      for (const [one, point] of rows) {
        make("span", { class: "c" + one.look }, this.values).textContent = "\u25cf\u00a0";
        this.values.append(number(point[1]) + "  ");
      }
      this.meaning.hidden = rows.length > 0;
      this.values.hidden = !rows.length;
      this.tip.hidden = !here;
      if (!here) return;
      this.tip.replaceChildren();
      make("b", {}, this.tip).textContent = this.data.unit + " " + (this.data.unit === "work" ? count(work) : number(work));
      for (const [one, point] of rows) {
        const row = make("div", {}, this.tip);
        make("span", { class: "c" + one.look }, row).textContent = "\u25cf ";
        row.append(one.name + ": " + number(point[1]));
        if (one.seeds > 1 && point[2] !== point[3])
          make("small", {}, row).textContent = "  " + number(point[2]) + " to " + number(point[3]);
      }
      if (!rows.length) make("div", {}, this.tip).textContent = "nothing recorded yet";
      this.place(x);
    }

    // Below the axis, so that it covers no curve, and inside the figure.
    place(x) {
      const frame = this.figure.getBoundingClientRect(), drawing = this.svg.getBoundingClientRect();
      const { width, bottom } = this.data.box, scale = drawing.width / width;
      const left = drawing.left - frame.left + x * scale - this.tip.offsetWidth / 2;
      this.tip.style.left = Math.max(2, Math.min(left, frame.width - this.tip.offsetWidth - 4)) + "px";
      this.tip.style.top = drawing.top - frame.top + (bottom + 20) * scale + "px";
    }

    hide() {
      this.layer.setAttribute("visibility", "hidden");
      this.tip.hidden = this.values.hidden = true;
      this.meaning.hidden = false;
    }
  }

  // Panels that stand together share their axis, so all of them show the same work, or the same second.
  for (const section of document.querySelectorAll(".panels")) {
    const figures = [...section.querySelectorAll("figure.panel")].filter((one) => one.querySelector("script.points"));
    const panels = figures.map((figure) => new Panel(figure));
    const show = (work, here) => panels.forEach((panel) => panel.show(work, panel === here));
    const hide = () => panels.forEach((panel) => panel.hide());
    for (const panel of panels) {
      let index = -1;
      panel.svg.addEventListener("pointermove", (event) => show(panel.workAt(event.clientX), panel));
      panel.svg.addEventListener("pointerdown", (event) => show(panel.workAt(event.clientX), panel));
      panel.svg.addEventListener("pointerleave", hide);
      panel.svg.addEventListener("blur", () => { index = -1; hide(); });
      panel.svg.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (event.key === "Escape") hide();
        if (!step) return;
        event.preventDefault();
        const works = panel.works();
        index = Math.min(works.length - 1, Math.max(0, index + step));
        if (works.length) show(works[index], panel);
      });
    }
  }

  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const name = button.dataset.series;
      if (!hidden.delete(name)) hidden.add(name);
      const same = (element) => element.dataset.series === name;
      [...document.querySelectorAll(".legend button")].filter(same)
        .forEach((one) => one.setAttribute("aria-pressed", String(!hidden.has(name))));
      [...document.querySelectorAll("g.series")].filter(same)
        .forEach((one) => one.classList.toggle("off", hidden.has(name)));
    });
  }

  // Numbers before words, what is missing last in either direction.
  const compare = (a, b, way) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const x = Number(a), y = Number(b);
    return way * (Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y);
  };

  for (const button of document.querySelectorAll("thead button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th"), body = button.closest("table").tBodies[0];
      const rising = head.getAttribute("aria-sort") !== "ascending";
      for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const value = (row) => row.cells[head.cellIndex].dataset.value;
      body.append(...[...body.rows].sort((a, b) => compare(value(a), value(b), rising ? 1 : -1)));
    });
  }

  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
})();
