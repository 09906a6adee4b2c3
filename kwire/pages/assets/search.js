// Searches the index of search-index.js: rows of [text, kind, page]. A row must match every word.
(function () {
  "use strict";
  const box = document.getElementById("search"), list = document.getElementById("found");
  const root = document.body.dataset.root, most = 50;
  const rows = window.searchIndex.map(row => [row[0].toLowerCase(), row]);
  function show() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    list.replaceChildren();
    list.hidden = !words.length;
    if (!words.length) return;
    const hits = rows.filter(row => words.every(word => (row[0] + " " + row[1][1].toLowerCase()).includes(word)));
    const start = row => row[0] === words[0] ? 0 : row[0].startsWith(words[0]) ? 1 : 2;
    hits.sort((a, b) => start(a) - start(b));
    for (const [, [text, kind, page]] of hits.slice(0, most)) {
      const item = document.createElement("li"), link = document.createElement("a"), small = document.createElement("small");
      link.href = root + page;
      link.textContent = text;
      small.textContent = kind;
      item.append(link, small);
      list.append(item);
    }
    if (!hits.length || hits.length > most) {
      const item = document.createElement("li");
      item.textContent = hits.length ? `and ${hits.length - most} more` : "nothing found";
      list.append(item);
    }
  }
  box.addEventListener("input", show);
  const query = new URLSearchParams(location.search).get("q");  // page.html?q=words searches at once
  if (query) { box.value = query; show(); }
  document.addEventListener("keydown", event => {
    if (event.key === "/" && event.target !== box) { event.preventDefault(); box.focus(); }
    if (event.key === "Escape") { box.value = ""; show(); }
    if (event.key === "Enter" && event.target === box) { const link = list.querySelector("a"); if (link) location.href = link.href; }
  });
})();
