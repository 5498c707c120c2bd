// In the book, the same program in several languages is a block with tabs: code blocks in Rust, Python
// and JavaScript that follow one another. The choice is kept for the other programs and pages.
(() => {
  const NAMES = { rust: "Rust", python: "Python", js: "JavaScript" };
  const KEPT = "amber-language";

  /** The language of a code block, if it is one of these. */
  function languageOf(element) {
    const code = element?.tagName === "PRE" ? element.querySelector("code") : undefined;
    return Object.keys(NAMES).find((language) => code?.classList.contains(`language-${language}`));
  }

  /** The code blocks in different languages from this one on. */
  function together(first) {
    const blocks = new Map();
    for (let block = first; ; block = block.nextElementSibling) {
      const language = languageOf(block);
      if (!language || blocks.has(language)) return blocks;
      blocks.set(language, block);
    }
  }

  function choose(language) {
    for (const element of document.querySelectorAll(".languages [data-language]")) {
      const isChosen = element.dataset.language === language;
      if (element.tagName === "BUTTON") element.setAttribute("aria-pressed", isChosen);
      else element.hidden = !isChosen;
    }
    localStorage.setItem(KEPT, language);
  }

  for (const first of document.querySelectorAll("main > pre")) {
    const blocks = together(first);
    // The later ones are moved together with the first.
    if (blocks.size < Object.keys(NAMES).length || first.closest(".languages")) continue;
    const box = document.createElement("div");
    box.className = "languages";
    first.before(box);
    for (const language of blocks.keys()) {
      const button = document.createElement("button");
      button.dataset.language = language;
      button.textContent = NAMES[language];
      button.onclick = () => {
        const { top } = button.getBoundingClientRect();
        choose(language);
        // Programs above have other lengths now.
        scrollBy(0, button.getBoundingClientRect().top - top);
      };
      box.append(button);
    }
    for (const [language, block] of blocks) {
      block.dataset.language = language;
      box.append(block);
    }
  }
  const kept = localStorage.getItem(KEPT);
  choose(kept in NAMES ? kept : "rust");
})();
