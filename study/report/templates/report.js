"use strict";
(() => {
  // Pixels of a plot: below, panels stand one below another, and names of rows above their bars.
  const NARROW = 640;
  const NARROW_WITH_ROWS = 900;
  const dark = JSON.parse(document.getElementById("dark-colours").textContent);
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const config = {
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

  // A text in at most so many pixels, both of its ends kept; its entities are letters.
  function cut(text, pixels, size = 12) {
    const letters = String(text).match(/&[a-z]+;|[^]/g) || [];
    const most = Math.max(6, Math.floor(pixels / (0.54 * size)));
    if (letters.length <= most || /<br>/.test(text)) return text;
    const head = Math.ceil((most - 1) / 2);
    return letters.slice(0, head).join("") + "…" + letters.slice(letters.length - (most - 1 - head)).join("");
  }

  // The panels of a figure that have traces: the names of their axes, in the order of reading.
  function panelsOf({ data, layout }) {
    const used = new Set(data.map((trace) => trace.xaxis || "x"));
    return Object.keys(layout).filter((key) => /^xaxis\d*$/.test(key)).map((key) => key.slice(5))
      .filter((number) => used.has("x" + number) && layout["yaxis" + number])
      .map((number) => ({ number, x: layout["xaxis" + number], y: layout["yaxis" + number] }))
      .map((one) => ({ ...one, left: (one.x.domain || [0, 1])[0], top: (one.y.domain || [0, 1])[1] }))
      .sort((a, b) => b.top - a.top || a.left - b.left);
  }

  const hasRows = ({ layout }) => Boolean(layout.meta && layout.meta.rows);

  // Puts the panels one below another, and the names of rows above their bars.
  function stack(figure, width) {
    const { data, layout } = figure;
    const panels = panelsOf(figure);
    const named = hasRows(figure);
    const columns = new Set(panels.map((one) => one.left)).size;
    const rows = Math.max(0, ...panels.map((one) => (one.y.tickvals || []).length));
    const title = (axis) => (axis.title && axis.title.text) || "";
    layout.annotations = (layout.annotations || []).filter((one) => one.name !== "beside");
    layout.margin.r = Math.min(layout.margin.r, 40);
    if (named) {
      layout.margin.l = 12;
      data.forEach((trace) => { if (trace.width) trace.width = 0.4; });
    }
    if (columns > 1 || named) {
      const each = named ? 38 * rows + 8 : Math.max(200, 0.6 * width);
      const gap = 74;
      const inside = panels.length * each + (panels.length - 1) * gap;
      const titles = ["x", "y"].map((way) => title((panels.find((one) => title(one[way])) || panels[0])[way]));
      panels.forEach((one, place) => {
        const top = 1 - (place * (each + gap)) / inside;
        for (const note of layout.annotations) {
          const middle = one.x.domain && (one.x.domain[0] + one.x.domain[1]) / 2;
          if (note.yref === "paper" && Math.abs(note.x - middle) < 1e-6 && Math.abs(note.y - one.top) < 1e-6) {
            note.x = 0.5;
            note.y = top - 1e-3; // no longer where a later panel looks
          }
        }
        one.x.domain = [0, 1];
        one.y.domain = [Math.max(0, top - each / inside), top];
        one.x.showticklabels = true;
        one.y.showticklabels = !named;
        one.x.title = { ...one.x.title, text: title(one.x) || titles[0] };
        if (!named) one.y.title = { ...one.y.title, text: title(one.y) || titles[1] };
      });
      layout.height = inside + layout.margin.t + layout.margin.b;
    }
    if (named) {
      for (const { number, y } of panels) {
        y.range = [rows - 0.5, -0.85];
        (y.ticktext || []).forEach((text, row) => layout.annotations.push({
          text: cut(text, width - 40, 11.5), xref: `x${number} domain`, x: 0, xanchor: "left", yref: "y" + number,
          y: y.tickvals[row], yanchor: "bottom", yshift: 7, showarrow: false, font: y.tickfont,
        }));
      }
    }
    data.forEach((trace) => { if (trace.name) trace.name = cut(trace.name, width - 70); });
  }

  // Numbers in the fields of a heat map, if they have room.
  function labelFields({ data, layout }, width) {
    const narrow = data.some((trace) => trace.type === "heatmap" && (width - 160) / trace.z[0].length < 44);
    if (!narrow) return;
    data.forEach((trace) => { trace.texttemplate = ""; });
    for (const menu of layout.updatemenus || []) menu.buttons.forEach(({ args }) => { args[0].texttemplate = [""]; });
  }

  // Titles no longer than their axes.
  function shorten({ layout }, width) {
    const { margin, height } = layout;
    for (const [key, axis] of Object.entries(layout)) {
      if (!/^[xy]axis\d*$/.test(key) || !axis.title || !axis.title.text) continue;
      const [low, high] = axis.domain || [0, 1];
      const whole = key[0] === "x" ? width - margin.l - margin.r : height - margin.t - margin.b;
      // Beside a single panel there is room.
      axis.title.text = cut(axis.title.text, (high - low) * whole + (high - low > 0.9 ? 40 : 0), 12.5);
    }
  }

  // Hides tick labels that would overprint: of each axis every second, third, … is left, then those of other axes.
  function thin(place) {
    const axes = new Map();
    for (const text of place.querySelectorAll("[class$=tick] > text")) {
      text.style.visibility = "";
      const name = text.parentNode.getAttribute("class");
      if (text.textContent.trim()) axes.set(name, [...(axes.get(name) || []), { text, box: text.getBoundingClientRect() }]);
    }
    const meet = ({ box: a }, { box: b }) =>
      a.left < b.right + 3 && b.left < a.right + 3 && a.top < b.bottom && b.top < a.bottom;
    const kept = [];
    for (const labels of axes.values()) {
      let step = 1;
      const left = () => labels.filter((_, place) => place % step === 0);
      while (step < labels.length && left().some((one, at, all) => at > 0 && meet(all[at - 1], one))) step += 1;
      labels.forEach((one, at) => {
        if (at % step === 0 && !kept.some((other) => meet(one, other))) kept.push(one);
        else one.text.style.visibility = "hidden";
      });
    }
  }

  // Puts the legend clear of the titles of panels below it; returns whether it was not.
  function makeRoom(place, { layout }) {
    const legend = place.querySelector("g.legend > .bg");
    if (!legend || !(layout.annotations || []).some((one) => one.yref === "paper" && one.y > 0.99)) return false;
    const lacking = legend.getBoundingClientRect().height + 34 - layout.margin.t;
    if (lacking <= 0) return false;
    layout.margin.t += lacking;
    layout.height += lacking;
    place.style.height = `${layout.height}px`;
    return true;
  }

  const figures = [...document.querySelectorAll("script.figure")].map((script) => ({
    place: document.getElementById(script.dataset.for),
    text: script.textContent,
  }));

  async function draw(one, isDark) {
    const { place } = one;
    const width = place.clientWidth;
    const figure = JSON.parse(themed(one.text, isDark));
    if (width < (hasRows(figure) ? NARROW_WITH_ROWS : NARROW)) stack(figure, width);
    labelFields(figure, width);
    shorten(figure, width);
    place.style.height = `${figure.layout.height}px`;
    await Plotly.react(place, figure.data, figure.layout, config);
    if (makeRoom(place, figure)) await Plotly.react(place, figure.data, figure.layout, config);
    if (!one.width) place.on("plotly_afterplot", () => thin(place));
    one.width = width;
    thin(place);
  }

  async function drawAll(isDark) {
    for (const one of figures) await draw(one, isDark);
    document.documentElement.dataset.drawn = figures.length;
  }

  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const one = figures.find(({ place }) => place === target);
      if (!one.width || one.width === target.clientWidth || !target.clientWidth) continue;
      one.width = target.clientWidth;
      window.requestAnimationFrame(() => draw(one, prefersDark.matches));
    }
  });

  async function begin() {
    try {
      await unpackPlotly();
    } catch (error) {
      figures.forEach(({ place }) => { place.textContent = `The plot cannot be drawn: ${error.message}`; });
      return;
    }
    prefersDark.addEventListener("change", () => drawAll(prefersDark.matches));
    window.addEventListener("beforeprint", () => { if (prefersDark.matches) drawAll(false); });
    window.addEventListener("afterprint", () => { if (prefersDark.matches) drawAll(true); });
    await drawAll(prefersDark.matches);
    figures.forEach(({ place }) => observer.observe(place));
  }

  // Plotly's script is a third of its size when compressed.
  async function unpackPlotly() {
    if (!window.DecompressionStream) throw new Error("this browser has no DecompressionStream (Chrome 80, Firefox 113, Safari 16.4)");
    const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  const table = document.getElementById("point-table");
  const headings = table ? [...table.tHead.rows[0].cells] : [];
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

  begin();
})();
