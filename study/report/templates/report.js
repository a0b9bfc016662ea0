"use strict";
(() => {
  const dark = JSON.parse(document.getElementById("dark-colours").textContent);
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const config = {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
    toImageButtonOptions: { format: "svg" },
  };

  const hex = (red, green, blue) => "#" + [red, green, blue].map((one) => Number(one).toString(16).padStart(2, "0")).join("");
  // Figures come in the colours of the light page.
  const themed = (text, isDark) => !isDark ? text : text
    .replace(/"#[0-9a-f]{6}"/gi, (found) => `"${dark[found.slice(1, -1).toLowerCase()] || found.slice(1, -1)}"`)
    .replace(/rgba\((\d+),(\d+),(\d+),/g, (found, red, green, blue) => {
      const other = dark[hex(red, green, blue)];
      return other ? `rgba(${[1, 3, 5].map((at) => parseInt(other.slice(at, at + 2), 16)).join(",")},` : found;
    });

  const figures = [...document.querySelectorAll("script.figure")].map((script) => ({
    place: document.getElementById(script.dataset.for),
    text: script.textContent,
  }));

  async function draw(isDark) {
    for (const { place, text } of figures) {
      const figure = JSON.parse(themed(text, isDark));
      await Plotly.react(place, figure.data, figure.layout, config);
    }
    document.documentElement.dataset.drawn = figures.length;
  }

  prefersDark.addEventListener("change", () => draw(prefersDark.matches));
  window.addEventListener("beforeprint", () => { if (prefersDark.matches) draw(false); });
  window.addEventListener("afterprint", () => { if (prefersDark.matches) draw(true); });
  draw(prefersDark.matches);

  const table = document.getElementById("point-table");
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => heading.querySelector("button").addEventListener("click", () => {
    const order = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    headings.forEach((each) => each.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const key = (row) => row.cells[column].dataset.sort;
    const text = (row) => row.cells[column].textContent.trim();
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      // What is not known stays at the end.
      if (x === undefined || y === undefined) {
        return x === y ? sign * text(a).localeCompare(text(b), undefined, { numeric: true }) : x === undefined ? 1 : -1;
      }
      return sign * (Number(x) - Number(y));
    });
    table.tBodies[0].append(...rows);
  }));
})();
