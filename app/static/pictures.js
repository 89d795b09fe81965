// What is on the screen as files: a view as a picture (SVG or PNG), its tables and the neighbors as CSV.

(function (bw) {
  "use strict";

  const N_NEIGHBORS = 20; // a list, as many as are exact for every mix
  const PNG_SCALE = 2;
  const DRAWN = "svg, canvas, .dot-rows, .gap-columns, table.values";
  const ALWAYS = /^(border|outline)/; // a width says nothing where there is no style, and counts where there is one
  const KEPT = /^(?!(--|-webkit-|transition|animation|cursor|pointer-events|will-change))/;

  /** The drawings of the open tab: [{name, element}]. */
  function plotsHere() {
    const named = [...document.querySelectorAll("#views .map-row, #views .view-head")].map((node) =>
      (node.matches(".map-row") ? { name: node.getAttribute("aria-label"), element: node }
        : { name: node.querySelector("h2").textContent, element: node.parentElement }));
    return named.filter(({ element }) => element.checkVisibility() && element.offsetHeight && element.querySelector(DRAWN));
  }

  // ---- pictures ----------------------------------------------------------------------------------

  /** The typeface, so that a picture has the page's letters wherever it is opened. */
  async function fontFaces() {
    const faces = [...document.fonts].filter((face) => face.status === "loaded");
    const rules = [...document.styleSheets].flatMap((sheet) => {
      try {
        return [...sheet.cssRules];
      } catch { // a sheet of another origin; there is none of ours
        return [];
      }
    }).filter((rule) => rule instanceof CSSFontFaceRule && faces.some(({ family }) =>
      rule.style.fontFamily.includes(family.replace(/["']/g, ""))));
    const texts = await Promise.all(rules.map(async (rule) => {
      const address = /url\(["']?([^"')]+)/.exec(rule.style.src);
      if (!address) return "";
      const blob = await (await fetch(new URL(address[1], rule.parentStyleSheet.href || location.href))).blob();
      return rule.cssText.replace(/url\([^)]*\)/, `url(${await dataUrl(blob)})`);
    }));
    return texts.join("\n");
  }

  const dataUrl = (blob) => new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(blob);
  });

  /** What elements look like where no style sheet is: (element) -> its computed style there. */
  function bareStyles() {
    const frame = bw.element("iframe", { hidden: true });
    document.body.append(frame);
    const known = new Map();
    const of = ({ namespaceURI, localName }) => {
      if (!known.has(localName)) {
        const bare = frame.contentDocument.createElementNS(namespaceURI, localName);
        frame.contentDocument.body.append(bare);
        const style = frame.contentWindow.getComputedStyle(bare);
        known.set(localName, new Map([...style].map((name) => [name, style.getPropertyValue(name)])));
      }
      return known.get(localName);
    };
    return { of, done: () => frame.remove() };
  }

  /** A copy that looks the same without the page's style sheets: every element with what differs from
   *  its bare looks, or from its parent. */
  function copyOf(element, bare, above) {
    const style = getComputedStyle(element);
    const copy = element instanceof HTMLCanvasElement ? new Image(element.width, element.height) : element.cloneNode(false);
    if (element instanceof HTMLCanvasElement) copy.src = element.toDataURL();
    const plain = bare.of(copy);
    copy.setAttribute("style", [...style].filter((name) => KEPT.test(name)
      && (ALWAYS.test(name) || style.getPropertyValue(name) !== plain.get(name) || (above && style.getPropertyValue(name) !== above.getPropertyValue(name))))
      .map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
    for (const child of element.childNodes) {
      if (child instanceof Text) copy.append(child.cloneNode());
      else if (child instanceof Element && child.checkVisibility() && child.localName !== "script") copy.append(copyOf(child, bare, style));
    }
    return copy;
  }

  /** A view as SVG text, drawn as the browser draws it. */
  bw.svgOf = async function (element) {
    const { offsetWidth: width, offsetHeight: height } = element;
    const bare = bareStyles();
    const copy = copyOf(element, bare, null);
    bare.done();
    copy.style.margin = "0";
    copy.style.background = bw.color("ground");
    copy.setAttribute("xmlns", "http://www.w3.org/1999/xhtml");
    const svg = bw.svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` },
      bw.svg("style", {}, await fontFaces()), bw.svg("foreignObject", { width: "100%", height: "100%" }, copy));
    return new XMLSerializer().serializeToString(svg);
  };

  /** The same as a PNG, twice as fine as the screen. */
  bw.pngOf = async function (element) {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await bw.svgOf(element))}`;
    await image.decode();
    const canvas = bw.element("canvas", { width: PNG_SCALE * image.width, height: PNG_SCALE * image.height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  };

  // ---- tables ------------------------------------------------------------------------------------

  /** Rows of cells as CSV. A text that a spreadsheet would take for a formula gets an apostrophe. */
  const csv = (rows) => rows.map((row) => row.map((cell) => {
    let text = String(cell ?? "");
    if (typeof cell === "string" && /^[=+@\t\r-]/.test(text) && !/^-?[\d.]+$/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  }).join(",")).join("\r\n");

  /** The tables of numbers in a view, one under the other. */
  bw.tablesCsv = (element) => csv([...element.querySelectorAll("table.values")].flatMap((table) => [
    [table.caption ? table.caption.textContent : ""],
    ...[...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent)), []]));

  /** The chosen token's nearest under every layer and mix of every encoder. */
  bw.neighborsCsv = function () {
    const { bank, chosen } = bw.state;
    const rows = [["encoder", "layer", "weights", "gamma", "rank", "token", "sentence", "position", "source", bw.nearText(),
      "query token", "query sentence", "query position"]];
    for (const [kind, { n_layers }] of Object.entries(bank.encoders)) {
      const set = bw.candidatesOf(kind);
      if (!set) continue;
      for (const layer of [...Array(n_layers).keys(), null]) {
        const column = { encoder: kind, layer };
        const s = bw.sharesOf(column);
        const gamma = bw.gammaOf(column);
        bw.rank(set, s, gamma, N_NEIGHBORS).forEach(({ index, score }, i) => {
          const place = bw.placeOf(set, index);
          rows.push([kind, layer === null ? "mix" : layer, s.map((x) => x.toFixed(4)).join(" "), gamma, i + 1, place.word,
            place.tokens.join(" "), place.token, place.pool, score.toFixed(6), bw.chosenWord(),
            bw.state.run.sentences[chosen.sentence].join(" "), chosen.token]);
        });
      }
    }
    return csv(rows);
  };

  /** For the share panel: the open tab's drawings with what can be done with each. said(text). */
  bw.picturesList = function (said, close) {
    const action = (text, label, act) => bw.element("button", { type: "button", class: "pill", "aria-label": label, onclick: async () => {
      said(`${label} \u2026`);
      try {
        said(await act() || "");
      } catch (error) {
        said(`${label}: ${error.message}`);
      }
    } }, text);
    const save = (blob, name) => {
      bw.save(blob, name);
      return `${name}, ${(blob.size / 1e3).toFixed(0)} KB`;
    };
    const file = (name) => `both-ways-${name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 40)}`;
    const rows = plotsHere().map(({ name, element }) => bw.element("li", {},
      action("PNG", `${name}, PNG`, async () => save(await bw.pngOf(element), `${file(name)}.png`)),
      action("SVG", `${name}, SVG`, async () => save(new Blob([await bw.svgOf(element)], { type: "image/svg+xml" }), `${file(name)}.svg`)),
      element.querySelector("table.values") && action("CSV", `${name}, CSV`,
        () => save(new Blob([bw.tablesCsv(element)], { type: "text/csv" }), `${file(name)}.csv`)),
      action("full screen", `${name}, full screen`, async () => {
        close();
        await element.requestFullscreen();
      }), bw.element("span", {}, name)));
    const near = bw.element("li", {}, action("CSV", "neighbors, CSV",
      () => save(new Blob([bw.neighborsCsv()], { type: "text/csv" }), "both-ways-neighbors.csv")),
    bw.element("span", {}, `neighbors of \u201c${bw.chosenWord()}\u201d, ${N_NEIGHBORS} under every layer and mix`));
    return bw.element("ul", { class: "home" }, ...rows, near);
  };
})(window.bothways);
