// The question above the maps, and in its line what they show: axes, colors, 2-D or 3-D, the examples
// behind, and the way of the points from layer to layer.

(function (bw) {
  "use strict";

  const POLL = 500; // milliseconds between questions about a fit
  const AXES = [
    ["all", "all words", "principal components of all our examples, fitted once, for all layers"],
    ["word", "this word", "principal components of the occurrences of the chosen word"],
    ["layers", "each layer\u2019s own", "principal components of every layer by itself, turned onto each other"],
    ["umap", "UMAP", "each layer by itself, turned onto each other; distances are not kept"],
    ["aligned", "UMAP, layers aligned", "all layers laid out together; distances are not kept"],
  ];
  const visitor = Math.random().toString(36).slice(2) + Date.now().toString(36);

  /** Whether this browser draws in three dimensions; found out once. */
  let webGL = null;
  bw.hasWebGL = function () {
    if (webGL === null) {
      const canvas = document.createElement("canvas");
      const context = canvas.getContext("webgl") || canvas.getContext("experimental-webgl");
      webGL = Boolean(context);
      const end = context && context.getExtension("WEBGL_lose_context");
      if (end) end.loseContext();
    }
    return webGL;
  };

  bw.part("question", function (element, { trigger }) {
    const want = { basis: "all", dims: 2, seed: 0, behind: false };
    let polling = null;
    let trouble = ""; // why there is no third dimension

    const title = bw.element("h2", {});
    const note = bw.element("span", { class: "note" });
    const notice = bw.element("p", { class: "notice", role: "status", hidden: true });
    const legend = bw.element("p", { class: "legend", hidden: true, "aria-label": "What the colors tell" });
    const axes = menu("axes", AXES, (basis) => set({ basis }));
    axes.addEventListener("focus", () => trigger("warm", sent()), { once: true }); // UMAP may be next
    const colors = menu("color", bw.MAP_COLORS, (color) => {
      bw.state.color = color;
      bw.emit("color");
    });
    bw.option("color", () => bw.state.color, (color) => {
      if (!bw.MAP_COLORS.some(([name]) => name === color)) return;
      colors.value = bw.state.color = color;
      bw.emit("color");
    });
    const dims = [[2, "2-D"], [3, "3-D"]].map(([key, text]) => bw.element("button", { type: "button",
      "data-key": key, onclick: () => choose3D(key) }, text));
    const behind = bw.element("button", { type: "button", class: "pill behind", "aria-pressed": "false",
      title: "our example sentences as small dots behind the text\u2019s, 5,000 at most",
      onclick: () => set({ behind: !want.behind }) }, "examples");
    const morph = bw.element("button", { type: "button", class: "pill morph",
      title: "the points travel from layer to layer, in the last map of each row",
      onclick: () => bw.emit("morph") }, "\u25b6 morph");
    element.replaceChildren(
      bw.element("header", { class: "view-head" }, title, note,
        bw.element("div", { class: "map-controls" }, control("axes", axes), control("color", colors),
          bw.element("div", { class: "segmented", role: "group", "aria-label": "dimensions" }, ...dims),
          behind, morph)),
      legend, notice);

    function menu(name, options, use) {
      const select = bw.element("select", { "aria-label": name, "data-name": name,
        onchange: () => use(select.value) },
      ...options.map(([value, text, hint]) => bw.element("option", { value, title: hint }, text)));
      return select;
    }

    function control(name, select) {
      return bw.element("label", { class: "control" }, bw.element("span", {}, name), select);
    }

    /** All that a visitor has chosen goes along with every event: they share one value. */
    const sent = () => ({ ...want, visitor, color: bw.state.color });

    function set(change) {
      Object.assign(want, change);
      trouble = "";
      bw.emit("busy", true);
      trigger("basis", sent());
    }

    function choose3D(key) {
      if (key === 3 && !bw.hasWebGL()) {
        trouble = "3-D needs WebGL, which this browser does not offer: the maps stay flat.";
        tell();
      } else set({ dims: key });
    }

    function draw() {
      const { run } = bw.state;
      if (!run) return;
      const word = bw.chosenWord();
      title.textContent = run.question || `Where does each layer put \u201c${word}\u201d?`;
      note.textContent = run.note || "Copies of the chosen word are colored and carry the number of their sentence.";
      note.title = note.textContent;
      paint();
    }

    function paint() {
      if (bw.mustAsk()) trigger("paint", sent());
      bw.drawLegend(legend);
    }

    function show() {
      const { maps } = bw.state;
      if (!maps) return;
      Object.assign(want, { basis: maps.wanted, dims: maps.dims, seed: maps.seed, behind: maps.behind });
      axes.value = want.basis;
      behind.setAttribute("aria-pressed", String(want.behind));
      for (const button of dims) {
        button.setAttribute("aria-pressed", String(Number(button.dataset.key) === want.dims));
      }
      if (maps.waits) {
        bw.state.fitting = null;
        poll();
      } else clearTimeout(polling);
      tell();
    }

    // ---- a fit that takes its time -------------------------------------------------------------

    function poll() {
      clearTimeout(polling);
      polling = setTimeout(() => bw.state.maps.waits && trigger("fit", sent()), POLL);
    }

    function tell() {
      const { maps, fitting } = bw.state;
      const isUmap = maps && maps.wanted.match(/umap|aligned/);
      const parts = [trouble, maps && maps.notice];
      const buttons = [];
      if (maps && maps.waits) {
        parts.push(fittingText(fitting));
        buttons.push(bw.element("button", { type: "button", class: "pill cancel",
          onclick: () => set({ basis: "all" }) }, "cancel"));
      } else if (isUmap && !maps.notice) {
        parts.push(`UMAP, seed ${maps.seed}. Near is near, but far says little; equal vectors were spread`
          + " apart (layer 0!), and the mix has no map of its own.");
        if (maps.behind) parts.push("Examples are drawn on PCA axes only.");
        buttons.push(bw.element("button", { type: "button", class: "pill", title: "the same with other chance",
          onclick: () => set({ seed: (maps.seed + 1) % 10000 }) }, "other seed"));
      }
      notice.replaceChildren(parts.filter(Boolean).join(" "), ...buttons.flatMap((b) => [" ", b]));
      notice.hidden = !notice.textContent;
    }

    function fittingText(fitting) {
      if (!fitting) return "UMAP is asked for \u2026";
      const { failed, ahead, ready, done, total, seconds } = fitting;
      if (failed) return `There is no UMAP map: ${failed}.`;
      const time = ` \u00b7 ${seconds} s`;
      if (!ready) return `UMAP is starting, once \u2026${time}`;
      if (ahead) return `UMAP waits: ${ahead} visitor${ahead === 1 ? "" : "s"} first${time}`;
      return `UMAP: ${done} of ${total} layers are laid out${time}`;
    }

    bw.on("fitting", (fitting) => {
      if (fitting && !fitting.failed && bw.state.maps.waits) poll();
      tell();
    });
    bw.on("run", draw);
    bw.on("chosen", draw);
    bw.on("query", paint);
    bw.on("color", paint);
    bw.on("paint", paint);
    bw.on("theme", paint);
    bw.on("maps", show);
    draw();
    show();
  });
})(window.bothways);
