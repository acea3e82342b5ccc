"use strict";
// Columns that sort: by number where all of a column's cells have one, else by text; empty cells last. On paper everything is open.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const text = row => row.cells[at].textContent, number = row => parseFloat(text(row).replaceAll(",", ""));
      const sign = down ? -1 : 1;
      const compare = head.classList.contains("n") ? (a, b) => number(a) - number(b) : (a, b) => text(a).localeCompare(text(b));
      const rows = [...body.rows];
      rows.sort((a, b) => (text(a) === "") - (text(b) === "") || (text(a) === "" ? 0 : sign * compare(a, b)));
      body.append(...rows);
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(part => { part.open = true; }));
