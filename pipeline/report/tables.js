"use strict";
// Tables of a page sort by a click on a column's name, and show the rows that hold what is typed above them. Rows about
// properties are also chosen by city, brand and group, in all tables of the page at once. Without this script they are
// plain tables. What was typed, chosen and sorted is part of the address, so a link keeps it; links to other pages of the
// reports take the city, brand and group along.
(() => {
  const state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  const places = ["city", "brand", "group"];
  // What a page is limited to: all of its rows are of these, and links take them along.
  const header = document.querySelector("header[data-city], header[data-brand], header[data-group]");
  const limits = header ? header.dataset : {};
  for (const name of places) if (limits[name]) state.set(name, limits[name]);
  const placed = [...document.querySelectorAll("tr[data-city], tr[data-brand], tr[data-group]")];
  const filters = [];
  const keep = (name, value) => {
    if (value) state.set(name, value); else state.delete(name);
    const kept = state.toString();
    history.replaceState(null, "", kept ? "#" + kept : location.pathname + location.search);
  };
  const number = (text) => {
    const found = text.replace(/,/g, "").replace("−", "-").match(/[-+]?\d+(\.\d+)?/);
    return found ? parseFloat(found[0]) : null;
  };
  // Letters as they are typed without their marks; some marks do not come off by themselves.
  const plainly = {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ß": "ss", "æ": "ae", "œ": "oe", "ı": "i"};
  const plain = (text) => text.toLowerCase().normalize("NFD").replace(/[\u0300-\u036f]/g, "")
    .replace(/[łøđðþßæœı]/g, (letter) => plainly[letter]);
  const said = (count) => count.toLocaleString("en-US");
  const quoted = (word) => /^[\w.-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";
  const element = (name, properties) => Object.assign(document.createElement(name), properties);

  const taken = () => places.filter((name) => state.get(name));
  const chosen = () => taken().filter((name) => !limits[name]);
  const isWithin = (link) => link.getAttribute("href").startsWith("#");
  const keepInLinks = () => {
    const kept = new URLSearchParams(taken().map((name) => [name, state.get(name)])).toString();
    for (const link of document.querySelectorAll("a[href]:not([data-complete])")) {
      if (!isWithin(link) && link.pathname.endsWith(".html")) link.hash = kept;
    }
  };
  if (taken().length) keepInLinks();
  // The place within the page would take the place of the choice in the address.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    const place = link && isWithin(link) && state.size && document.getElementById(link.hash.slice(1));
    if (!place) return;
    event.preventDefault();
    place.tabIndex = -1;
    place.focus({preventScroll: true});
    place.scrollIntoView();
  });
  const bar = element("div", {className: "bar places"});
  for (const name of placed.length ? places.filter((name) => !limits[name]) : []) {
    const values = new Set(placed.map((row) => row.dataset[name]).filter(Boolean));
    if (state.get(name)) values.add(state.get(name));
    if (!values.size) continue;
    const select = element("select", {});
    const sorted = [...values].sort((one, other) => one.localeCompare(other));
    select.append(...["", ...sorted].map((value) => new Option(value || "all", value)));
    select.value = state.get(name) || "";
    select.addEventListener("change", () => {
      keep(name, select.value);
      filters.forEach((filter) => filter());
      keepInLinks();
    });
    const label = element("label", {textContent: name[0].toUpperCase() + name.slice(1) + " "});
    label.append(select);
    bar.append(label);
  }
  if (bar.children.length) {
    const note = "Filters the rows of properties; titles, charts and other tables cover all properties.";
    bar.append(element("span", {className: "soft", textContent: note}));
    document.querySelector("header").append(bar);
  }

  for (const section of document.querySelectorAll("section")) {
    const table = section.querySelector("table.rows");
    const body = table && table.tBodies[0];
    const rows = body ? [...body.rows] : [];
    const isPlaced = rows.some((row) => placed.includes(row));
    if (rows.length < 3 && !isPlaced) continue;
    const heads = [...table.tHead.rows[0].cells];
    const many = rows.length > 6;
    const search = element("input", {type: "search", placeholder: "Filter rows"});
    search.setAttribute("aria-label", "Filter the rows of this table");
    const all = element("button", {type: "button"});
    // The figures beside the page hold what the page does not.
    const total = Number(table.dataset.rows);
    const isPart = rows.length < total;
    all.textContent = (isPart ? "Show " : "Show all ") + said(rows.length);
    const counted = element("span", {className: "soft"});
    counted.setAttribute("role", "status");

    // What is said below the table about its rows, and what the page does not hold.
    const count = section.querySelector(".count");
    const first = count ? [...count.childNodes] : [];
    const inPrint = section.querySelector(".in-print");
    const say = (left, isFiltered) => {
      // Otherwise the rows that are shown are counted twice in print.
      if (inPrint) inPrint.hidden = isFiltered || table.dataset.all === "yes";
      if (!count) return;
      count.replaceChildren(...(isFiltered || table.dataset.all ? [said(left) + " of " + said(total) + " rows shown. "] : first));
      if (!isPart) return;
      count.append("Sorting and filters search the first " + said(rows.length) + " rows");
      if (isPlaced && count.dataset.report && chosen().length) {
        const options = chosen().map((name) => "--" + name + " " + quoted(state.get(name)));
        const command = ["nightaudit report", count.dataset.report, ...options].join(" ");
        count.append("; with all of ", chosen().map((name) => state.get(name)).join(", "), ": ");
        count.append(element("code", {textContent: command}));
      }
      count.append(". ");
    };

    const texts = new Map();
    const textOf = (row) => {
      // Cells stand apart: a word is not made of the ends of two of them.
      if (!texts.has(row)) texts.set(row, plain([...row.cells].map((cell) => cell.textContent).join(" ")));
      return texts.get(row);
    };
    const filter = () => {
      const words = plain(search.value).split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        const isThere = !isPlaced || chosen().every((name) => row.dataset[name] === state.get(name));
        row.hidden = !isThere || !words.every((word) => textOf(row).includes(word));
        left += row.hidden ? 0 : 1;
      }
      const isFiltered = words.length > 0 || (isPlaced && chosen().length > 0);
      table.classList.toggle("all", isFiltered || table.dataset.all === "yes");
      // All rows that a filter leaves are shown already.
      all.hidden = isFiltered;
      counted.textContent = isFiltered ? said(left) + " of " + (isPart ? "the first " : "") + said(rows.length) + " rows" : "";
      say(left, isFiltered);
    };
    say(rows.length, false);
    filters.push(filter);
    const showAll = () => { table.dataset.all = "yes"; all.remove(); filter(); };
    const sort = (at, down) => {
      const isNumber = heads[at].classList.contains("n");
      const value = (row) => {
        const cell = row.cells[at], text = cell.textContent.trim();
        // Words that follow each other otherwise than by letter have a place.
        return isNumber ? number(text) : cell.dataset.sort || (text === "–" ? null : text);
      };
      // Text by the numbers in it: 7–13 before 30–59.
      const order = (one, other) => isNumber ? one - other : one.localeCompare(other, undefined, {numeric: true});
      const values = new Map(rows.map((row) => [row, value(row)]));
      // Amounts in different currencies are not compared: each currency, or other unit, stands by itself.
      const unit = (row) => isNumber ? row.cells[at].textContent.replace(/[-+−\d.,\s]/g, "") : "";
      const units = new Map(rows.map((row) => [row, unit(row)]));
      const groups = [...new Set(units.values())];
      body.append(...[...rows].sort((first, second) => {
        const [one, other] = [values.get(first), values.get(second)];
        // What is missing comes last in either direction.
        if (one === null || other === null) return (one === null) - (other === null);
        const apart = groups.indexOf(units.get(first)) - groups.indexOf(units.get(second));
        return apart || (down ? order(other, one) : order(one, other));
      }));
      heads.forEach((head, place) => {
        if (place === at) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      // The first rows are those that are shown.
      for (const name of ["more", "late"]) {
        const held = rows.filter((row) => row.classList.contains(name)).length;
        [...body.rows].forEach((row, place) => row.classList.toggle(name, place >= rows.length - held));
      }
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
    const bar = element("div", {className: "bar"});
    if (isPlaced && !many) {
      bar.append(counted);
      table.parentElement.before(bar);
    }
    if (many) {
      bar.append(search, counted, all);
      table.parentElement.before(bar);
      search.addEventListener("input", () => { filter(); keep(section.id + ".rows", search.value.trim()); });
      all.addEventListener("click", showAll);
      if (!table.querySelector(".more") && !matchMedia("(max-width: 44rem)").matches) all.remove();
    }
    const sorted = /^(\d+)([ad])$/.exec(state.get(section.id + ".sort") || "");
    if (sorted && heads[sorted[1]]) sort(Number(sorted[1]), sorted[2] === "d");
    search.value = state.get(section.id + ".rows") || "";
    if (isPlaced && chosen().length) filter();
    if (many && search.value) { filter(); section.scrollIntoView(); }
  }
})();
