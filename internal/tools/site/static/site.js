// The search: the index is a script, so that it loads from the disk as well, and only once somebody searches.
"use strict";
(() => {
  const query = document.getElementById("query");
  const results = document.getElementById("results");
  const root = new URL(".", document.currentScript.src).href;
  let loading;

  const load = () => loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    script.onload = () => done(window.searchIndex.map((page) => ({ ...page, lower: page.text.toLowerCase(), lowerTitle: page.title.toLowerCase() })));
    script.onerror = failed;
    document.head.append(script);
  });

  // Words that questions have and that no page is about.
  const common = new Set(("a an and are as at be by can do does for from had has have how i if in is it its may me must my not of on one or our so " +
    "that the their them then there they this to was we what when where which who whom why will with would you your").split(" "));

  const wordsOf = (text) => {
    const all = text.toLowerCase().split(/[\s?!,;:"()]+/).filter((word) => word.length > 1);
    const telling = all.filter((word) => !common.has(word));
    return telling.length > 0 ? telling : all;
  };

  // score counts the words that a page has first; words in titles and headings count more than those in the text.
  const score = (page, words) => {
    let sum = 0;
    for (const word of words) {
      const inTitle = page.lowerTitle.includes(word), inHeading = page.headings.some(({ text }) => text.toLowerCase().includes(word));
      const times = page.lower.split(word).length - 1;
      if (!inTitle && !inHeading && times === 0) continue;
      sum += 100 + (inTitle ? 50 : 0) + (inHeading ? 20 : 0) + Math.min(times, 10);
    }
    return sum;
  };

  const marked = (text, words) => {
    const fragment = document.createDocumentFragment();
    const lower = text.toLowerCase();
    for (let at = 0; at < text.length;) {
      let next = text.length, length = 0;
      for (const word of words) {
        const i = lower.indexOf(word, at);
        if (i >= 0 && i < next) [next, length] = [i, word.length];
      }
      fragment.append(text.slice(at, next));
      if (length) {
        const mark = document.createElement("mark");
        mark.textContent = text.slice(next, next + length);
        fragment.append(mark);
      }
      at = next + length;
    }
    return fragment;
  };

  const show = (found, words) => {
    results.replaceChildren();
    if (found.length === 0) {
      const nothing = document.createElement("p");
      nothing.textContent = "No page has any of these words.";
      results.append(nothing);
    }
    for (const page of found.slice(0, 15)) {
      const link = document.createElement("a");
      const heading = page.headings.find(({ text }) => words.some((word) => text.toLowerCase().includes(word)));
      link.href = root + page.url + (heading ? "#" + heading.id : "");
      link.append(marked(page.title + (heading ? " › " + heading.text : ""), words));
      const at = Math.max(0, page.lower.indexOf(words[0]) - 60);
      const small = document.createElement("small");
      small.append(marked(page.text.slice(at, at + 180), words));
      link.append(small);
      results.append(link);
    }
    results.hidden = false;
  };

  query.addEventListener("input", async () => {
    const words = wordsOf(query.value);
    if (words.length === 0) {
      results.hidden = true;
      return;
    }
    const index = await load();
    show(index.map((page) => [score(page, words), page]).filter(([n]) => n > 0).sort((a, b) => b[0] - a[0]).map(([, page]) => page), words);
  });
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter") results.querySelector("a")?.click();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") results.hidden = true;
    if (event.key === "/" && document.activeElement !== query) {
      event.preventDefault();
      query.focus();
    }
  });
  document.addEventListener("click", (event) => {
    if (!results.contains(event.target) && event.target !== query) results.hidden = true;
  });
  const button = document.getElementById("menu-button");
  button.addEventListener("click", () => button.setAttribute("aria-expanded", document.getElementById("menu").classList.toggle("open")));
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) {
    query.value = asked;
    query.dispatchEvent(new Event("input"));
  }
})();
