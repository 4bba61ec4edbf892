// A button on every block of code that copies it, without the dollar signs and prompts of a terminal.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight")) {
    const button = Object.assign(document.createElement("button"), { className: "copy", type: "button", textContent: "copy" });
    button.setAttribute("aria-label", "copy this code");
    button.addEventListener("click", async () => {
      const code = block.querySelector("pre").textContent.replace(/^(\$|>>>) /gm, "");
      try { await navigator.clipboard.writeText(code); button.textContent = "copied"; }
      catch { getSelection().selectAllChildren(block.querySelector("pre")); button.textContent = "selected"; }
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
    block.append(button);
  }
});
