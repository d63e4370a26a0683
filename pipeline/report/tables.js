"use strict";
// Tables of a page sort by a click on a column's name, and show the rows that hold what is typed above them. Without
// this script they are plain tables. What was typed and sorted stands in the address, so a link keeps it.
(() => {
  const state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  const keep = (name, value) => {
    if (value) state.set(name, value); else state.delete(name);
    const kept = state.toString();
    history.replaceState(null, "", kept ? "#" + kept : location.pathname + location.search);
  };
  const number = (text) => {
    const found = text.replace(/,/g, "").replace("−", "-").match(/[-+]?\d+(\.\d+)?/);
    return found ? parseFloat(found[0]) : -Infinity;
  };
  const element = (name, properties) => Object.assign(document.createElement(name), properties);

  for (const section of document.querySelectorAll("section")) {
    const table = section.querySelector("table.rows");
    const body = table && table.tBodies[0];
    const rows = body ? [...body.rows] : [];
    if (rows.length < 3) continue;
    const heads = [...table.tHead.rows[0].cells];
    const many = rows.length > 6;
    const search = element("input", {type: "search", placeholder: "Filter rows"});
    search.setAttribute("aria-label", "Filter the rows of this table");
    const all = element("button", {type: "button"});
    // The figures beside the page hold what the page does not.
    all.textContent = rows.length < table.dataset.rows ? "Show " + rows.length : "Show all " + rows.length;
    const counted = element("span", {className: "soft"});
    counted.setAttribute("role", "status");

    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        // Cells stand apart: a word is not made of the ends of two of them.
        const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        left += row.hidden ? 0 : 1;
      }
      table.classList.toggle("all", words.length > 0 || table.dataset.all === "yes");
      counted.textContent = words.length ? left + " of " + rows.length + " rows" : "";
    };
    const showAll = () => { table.dataset.all = "yes"; all.remove(); filter(); };
    const sort = (at, down) => {
      const isNumber = heads[at].classList.contains("n");
      const value = (row) => row.cells[at].textContent.trim();
      const order = (one, other) => isNumber
        ? number(value(one)) - number(value(other))
        : value(one).localeCompare(value(other));
      body.append(...[...rows].sort((one, other) => (down ? order(other, one) : order(one, other))));
      heads.forEach((head, place) => {
        if (place === at) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      // The first rows are those that are shown.
      const more = rows.filter((row) => row.classList.contains("more")).length;
      [...body.rows].forEach((row, place) => row.classList.toggle("more", place >= rows.length - more));
    };

    heads.forEach((head, at) => {
      const button = element("button", {type: "button", textContent: head.textContent});
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const down = before ? before === "ascending" : head.classList.contains("n");
        sort(at, down);
        keep(section.id + ".sort", at + (down ? "d" : "a"));
      });
    });
    if (many) {
      const bar = element("div", {className: "bar"});
      bar.append(search, counted, all);
      table.parentElement.before(bar);
      search.addEventListener("input", () => { filter(); keep(section.id + ".rows", search.value.trim()); });
      all.addEventListener("click", showAll);
      if (!table.querySelector(".more") && !matchMedia("(max-width: 44rem)").matches) all.remove();
    }
    const sorted = /^(\d+)([ad])$/.exec(state.get(section.id + ".sort") || "");
    if (sorted && heads[sorted[1]]) sort(Number(sorted[1]), sorted[2] === "d");
    search.value = state.get(section.id + ".rows") || "";
    if (many && search.value) { filter(); section.scrollIntoView(); }
  }
})();
