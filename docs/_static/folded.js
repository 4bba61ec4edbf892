// Opens the section that the address names, where sections are folded.
const unfold = () => {
  const section = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  section?.querySelector(":scope > details")?.setAttribute("open", "");
};
addEventListener("DOMContentLoaded", unfold);
addEventListener("hashchange", unfold);
