// What the theme leaves out for readers who use a keyboard or hear the page.
window.addEventListener("load", async () => {
  for (const summary of document.querySelectorAll(".bd-links summary")) {
    const page = summary.closest("li").querySelector("a");
    summary.setAttribute("aria-label", `Pages below ${page.textContent.trim()}`);
  }
  if (window.MathJax) {
    await window.MathJax.startup.promise;
    for (const formula of document.querySelectorAll("mjx-container[display]")) {
      formula.tabIndex = 0; // it scrolls if it is wider than the page
    }
  }
});
