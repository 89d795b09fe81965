// Rows of token maps, one row an encoder: its layers and their mix, in one frame.

(function (bw) {
  "use strict";

  const MAX_LABELS = 40;
  const RADIUS = { others: 2.5, caught: 3.5, copies: 4.5, chosen: 6.5 };
  const PAINTED = 3.5; // radius of other dots whose color tells something
  const MORPH = 1800; // milliseconds from one layer to the next

  bw.part("maps", function (element, { trigger, encoder }) {
    const name = bw.element("h3", {});
    const note = bw.element("span", {});
    const caption = bw.element("span", { class: "method" });
    const head = bw.element("header", { class: "row-head" }, name, note, caption);
    const grid = bw.element("div", { class: "panels" });
    const blank = bw.element("p", { class: "blank", hidden: true });
    const row = bw.element("section", { class: "map-row", "data-encoder": encoder }, head, grid, blank);
    element.replaceChildren(row);

    let panels = []; // one a layer, and the mix
    let mix = null;
    let triangle = null; // of the leading encoder, made once
    let scene = null; // the map in three dimensions, made when first wanted
    let walk = null; // between which layers the last map is, a number; null where it is the mix
    let walking = null; // the frame that is asked for while the points travel

    let zoom = null; // {x, y} ranges of all panels, null for the whole frame
    let isDrawn = false; // what the page knows now: not while another tab is open
    let frame = ""; // zoom lasts until the frame changes
    let letters = 0; // size of the labels' letters, read once a drawing

    /** One panel a layer; made anew where the encoder has another depth than before. */
    function build() {
      const { lead, encoders } = bw.state.bank;
      const about = encoders[encoder];
      name.textContent = about.name;
      note.textContent = about.note;
      row.setAttribute("aria-label", `Maps of ${about.name}`);
      if (panels.length === about.n_layers + 1) return drawSoon();
      panels = Array.from({ length: about.n_layers }, (_, layer) => makePanel(layer));
      mix = makePanel(null);
      panels.push(mix);
      grid.replaceChildren(...panels.map((panel) => panel.element));
      if (encoder === lead && about.n_layers === 3) grid.append(triangle ||= bw.trianglePanel());
      zoom = null;
      if (scene) grid.append(scene.element);
      resized.disconnect();
      resized.observe(mix.node);
      drawSoon();
    }

    // ---- panels ----------------------------------------------------------------------------------

    function makePanel(layer) {
      const title = bw.element("span", { class: "title" },
        bw.element("b", {}, layer === null ? "Mix" : `Layer ${layer}`), " ",
        bw.element("small", {}, layer === 0 ? "characters" : ""));
      const node = bw.element("div", { class: "plot", role: "group" });
      const labels = bw.svg("svg", { class: "labels" });
      const ring = bw.element("div", { class: "ring", hidden: true });
      const behind = bw.element("canvas", { class: "behind", hidden: true });
      const panel = {
        layer, title, labels, ring, node, behind,
        element: bw.element("div", { class: layer === null ? "panel mix" : "panel" },
          title, behind, labels, node, ring),
      };
      // On a phone the map lets touches through, so that rows can be swiped; a tap takes the
      // nearest dot.
      panel.element.addEventListener("click", (event) => {
        const at = bw.narrow() ? bw.nearestDot(panel, positions(panel), event) : -1;
        if (at >= 0) choose(placeAt(at));
      });
      panel.plot = new bw.LivePlot(node, {
        ...events,
        lasso: (places) => catchTokens(places),
        zoom: (ranges) => zoomTo(ranges),
        reset: () => zoomTo(null),
      });
      return panel;
    }

    const choose = ([s, t]) => {
      bw.choose(s, t);
      trigger("select", { sentence: s, token: t });
    };
    const events = { click: (place) => place && choose(place),
      hover: (place) => bw.emit("hover", place), lasso: () => {}, zoom: () => {}, reset: () => {} };

    function makeScene() {
      scene = new bw.MapScene({
        title: (layer) => (layer === null ? mix.title.querySelector("b").textContent : `Layer ${layer}`),
        layers: () => panels.slice(0, -1).map((panel) => panel.layer),
        frame: () => bw.state.maps.encoders[encoder].frame,
        layout: () => bw.mapLayout(mix.node, bw.state.maps.encoders[encoder].frame, zoom),
        traces: (panel) => [...tracesBehind(panel), ...makeTraces({ ...panel, traces: classify() })],
      }, events);
      grid.append(scene.element);
    }

    // ---- data ------------------------------------------------------------------------------------

    /** Which drawn rows belong to which trace. */
    function classify() {
      const { run, maps, lasso } = bw.state;
      const word = bw.chosenWord();
      const caught = new Set(lasso.map(([s, t]) => `${s} ${t}`));
      const traces = { others: [], caught: [], copies: [], chosen: [] };
      maps.encoders[encoder].rows.forEach((textRow, i) => {
        const [s, t] = run.encoders[encoder].places[textRow];
        if (bw.isChosen(s, t)) traces.chosen.push(i);
        else if (bw.sameWord(run.sentences[s][t], word)) traces.copies.push(i);
        else if (caught.has(`${s} ${t}`)) traces.caught.push(i);
        else traces.others.push(i);
      });
      return traces;
    }

    /** How much of each layer is in a panel. */
    function sharesIn({ layer }) {
      const { s } = bw.weights[encoder];
      if (layer !== null) return s.map((_, k) => Number(k === layer));
      return walk === null ? s : s.map((_, k) => Math.max(0, 1 - Math.abs(walk - k)));
    }

    /** What a panel multiplies the layers' coordinates by. */
    function factorsOf(panel) {
      const isMix = panel.layer === null && walk === null;
      const { s, gamma } = bw.weights[encoder];
      return isMix ? bw.mixFactors(bw.state.maps.encoders[encoder], s, gamma) : sharesIn(panel);
    }

    /** Coordinates of all drawn rows in a panel: [x, y], and z where there is a third axis. */
    function positions(panel) {
      const { rows, coordinates, depth } = bw.state.maps.encoders[encoder];
      const factors = factorsOf(panel);
      const x = new Float64Array(rows.length);
      const y = new Float64Array(rows.length);
      bw.mixCoordinates(coordinates, factors, x, y);
      return depth ? [x, y, depths(depth, factors)] : [x, y];
    }

    function depths(depth, factors) {
      const L = factors.length;
      return Float64Array.from({ length: depth.length / L }, (_, i) =>
        factors.reduce((sum, factor, k) => sum + factor * depth[i * L + k], 0));
    }

    /** The examples behind the text's points, in three dimensions. */
    function tracesBehind(panel) {
      const { behind } = bw.state.maps.encoders[encoder];
      if (!behind) return [];
      const factors = factorsOf(panel);
      const x = new Float64Array(behind.n);
      const y = new Float64Array(behind.n);
      bw.mixCoordinates(behind.coordinates, factors, x, y);
      return [{ mode: "markers", name: "behind", x, y, z: depths(behind.depth, factors), hoverinfo: "skip",
        marker: { size: 1.5, color: bw.color("dot"), symbol: "circle", line: { width: 0 } } }];
    }

    const pick = (values, indices) => indices.map((i) => values[i]);
    const placeAt = (i) =>
      bw.state.run.encoders[encoder].places[bw.state.maps.encoders[encoder].rows[i]];

    function hoverText(i) {
      const [s, t] = placeAt(i);
      const { sentences, senses } = bw.state.run;
      const sense = senses && senses[s] && bw.sameWord(sentences[s][t], bw.chosenWord());
      const word = sentences[s][t];
      const short = word.length > 40 ? `${word.slice(0, 40)}\u2026` : word;
      return `<b>${bw.escape(short)}</b>  ${s + 1}${sense ? ` \u00b7 ${bw.escape(senses[s])}` : ""}`;
    }

    function makeTraces(panel) {
      const xyz = positions(panel);
      const color = bw.color(bw.state.bank.encoders[encoder].color);
      const ground = bw.color("ground");
      const paint = bw.paintRows(encoder, sharesIn(panel));
      const style = {
        others: { color: bw.color("dot"), line: { width: 0 } },
        caught: { color: bw.color("second"), line: { width: 0 } },
        copies: { color, line: { width: 1, color: ground } },
        chosen: { color, line: { width: 2.5, color: bw.color("ink") } },
      };
      const isDim = paint && bw.state.lasso.length; // what was not caught steps back
      return Object.entries(panel.traces).map(([name, indices]) => ({
        type: "scatter", mode: "markers", name,
        ...Object.fromEntries(xyz.map((values, k) => ["xyz"[k], pick(values, indices)])),
        customdata: indices.map(placeAt), text: indices.map(hoverText),
        hovertemplate: "%{text}<extra></extra>",
        marker: { opacity: 1, ...style[name], ...markers(name, indices, paint),
          ...(isDim && name === "others" ? { opacity: 0.25 } : {}) },
        ...(xyz.length > 2 ? {}
          : { selected: { marker: { opacity: 1 } }, unselected: { marker: { opacity: 1 } } }),
      }));
    }

    function markers(name, indices, paint) {
      if (!paint) return { size: 2 * RADIUS[name], symbol: "circle" };
      const size = indices.map((i) => 2 * (paint.known[i] ? Math.max(PAINTED, RADIUS[name]) : RADIUS[name]));
      return { size, color: pick(paint.colors, indices), symbol: pick(paint.symbols, indices) };
    }

    // ---- drawing ---------------------------------------------------------------------------------

    function draw() {
      const { run, maps } = bw.state;
      isDrawn = false;
      if (!run || !maps || !mix) return;
      const gap = run.encoders[encoder].message;
      const isBlank = !maps.encoders[encoder].rows.length;
      grid.hidden = isBlank;
      blank.hidden = !isBlank;
      blank.textContent = isBlank ? gap : "";
      const about = isBlank ? { text: "", title: "" } : bw.mapCaption(encoder, gap);
      caption.textContent = about.text;
      caption.title = about.title;
      if (frame !== String(maps.encoders[encoder].frame)) zoom = null;
      frame = String(maps.encoders[encoder].frame);
      if (isBlank || !grid.clientWidth) return;
      isDrawn = true;
      const isDeep = Boolean(maps.encoders[encoder].depth);
      grid.classList.toggle("deep", isDeep);
      if (isDeep) {
        if (!scene) makeScene();
        scene.element.style.setProperty("--columns", panels.length);
        showShares();
        return scene.draw();
      }
      const traces = classify();
      letters = bw.size("small");
      for (const panel of panels) {
        panel.traces = traces;
        panel.plot.draw(makeTraces(panel), bw.mapLayout(panel.node, maps.encoders[encoder].frame, zoom));
        panel.node.setAttribute("aria-label", bw.describeMap(encoder, panel));
        drawLabels(panel);
        bw.drawBehind(panel.behind, panel.plot, maps.encoders[encoder].behind, factorsOf(panel));
      }
      showShares();
    }

    function showShares() {
      const [name, small] = [mix.title.querySelector("b"), mix.title.querySelector("small")];
      mix.element.classList.toggle("mix", walk === null);
      name.textContent = walk === null ? "Mix" : "Morph";
      small.textContent = walk === null ? bw.shareText(bw.weights[encoder].s)
        : Number.isInteger(walk) ? `at layer ${walk}` : `layer ${Math.floor(walk)} \u2192 ${Math.ceil(walk)}`;
    }

    // ---- the points travel from layer to layer ---------------------------------------------------

    function morph() {
      cancelAnimationFrame(walking);
      const last = panels.length - 2;
      const start = performance.now();
      if (scene) scene.panel.layer = null;
      if (grid.classList.contains("deep")) drawSoon();
      const step = () => {
        walk = Math.min(last, (performance.now() - start) / MORPH);
        moveLast();
        if (walk < last) walking = requestAnimationFrame(step);
        else drawSoon();
      };
      step();
    }

    /** Maps that mix show the mix again; others have only the layers. */
    function endWalk() {
      cancelAnimationFrame(walking);
      const wasWalk = walk !== null;
      walk = bw.state.maps && !bw.state.maps.encoders[encoder].mixes ? 0 : null;
      return wasWalk && walk === null;
    }

    /** Sentence numbers beside the copies of the chosen word. */
    function drawLabels(panel, xy) {
      const [x, y] = xy || positions(panel);
      const { traces, plot, labels } = panel;
      const dot = (i, name) => {
        const [px, py] = plot.toPixels(x[i], y[i]);
        return { x: px, y: py, r: RADIUS[name], text: String(placeAt(i)[0] + 1),
          strong: name === "chosen" };
      };
      const copies = traces.copies.length > MAX_LABELS ? [] : traces.copies;
      const dots = [...traces.chosen.map((i) => dot(i, "chosen")), ...copies.map((i) => dot(i, "copies"))];
      const others = [...traces.others, ...traces.caught].flatMap((i) => plot.toPixels(x[i], y[i]));
      const placed = bw.placeLabels(dots, others, ...plot.size(), letters);
      while (labels.childElementCount < placed.length) {
        labels.append(bw.svg("text"));
      }
      [...labels.children].forEach((text, i) => {
        const label = placed[i];
        text.style.display = label ? "" : "none";
        if (!label) return;
        text.textContent = label.text;
        text.setAttribute("class", label.strong ? "strong" : "");
        text.setAttribute("transform", `translate(${label.x},${label.y})`);
      });
    }

    /** One frame of a drag: only the mix moves. */
    function moveMix(kind) {
      if (kind !== encoder || !bw.state.maps || !bw.state.maps.encoders[encoder].mixes) return;
      if (endWalk()) drawSoon();
      moveLast();
    }

    function moveLast() {
      if (!isDrawn) return;
      showShares();
      if (grid.classList.contains("deep")) return scene.panel.layer === null && scene.move();
      const xy = positions(mix);
      const paint = bw.state.color === "cosine" ? bw.paintRows(encoder, sharesIn(mix)) : null;
      Object.values(mix.traces).forEach((indices, trace) =>
        mix.plot.move(trace, pick(xy[0], indices), pick(xy[1], indices), paint && pick(paint.colors, indices)));
      drawLabels(mix, xy);
      bw.drawBehind(mix.behind, mix.plot, bw.state.maps.encoders[encoder].behind, factorsOf(mix));
    }

    function settleMix(kind) {
      if (kind !== encoder || !isDrawn || walk !== null) return;
      if (bw.state.color === "cosine" || grid.classList.contains("deep")) return drawSoon();
      const [x, y] = positions(mix);
      const all = Object.values(mix.traces);
      mix.plot.settle(all.map((indices) => pick(x, indices)), all.map((indices) => pick(y, indices)));
    }

    /** Zooming one map of a row zooms all: compared panels share scales. */
    function zoomTo(ranges) {
      zoom = ranges;
      drawSoon();
    }

    /** A ring around the token under the pointer, in every map. */
    function ring(place) {
      const row = place && bw.state.maps ? bw.state.maps.encoders[encoder].rows.findIndex((_, i) => {
        const [s, t] = placeAt(i);
        return s === place[0] && t === place[1];
      }) : -1;
      if (grid.classList.contains("deep")) return;
      for (const panel of panels) {
        panel.ring.hidden = row < 0 || !panel.plot.ready;
        if (panel.ring.hidden) continue;
        const [x, y] = positions(panel);
        const [px, py] = panel.plot.toPixels(x[row], y[row]);
        panel.ring.style.transform = `translate(${px}px, ${py}px)`;
        panel.ring.hidden = px < 0 || py < 0 || px > panel.node.clientWidth;
      }
    }

    function catchTokens(places) {
      bw.state.lasso = places;
      bw.emit("lasso");
    }

    let isWaiting = false;
    const drawSoon = () => {
      if (isWaiting) return;
      isWaiting = true;
      queueMicrotask(() => {
        isWaiting = false;
        draw();
      });
    };
    for (const topic of ["run", "chosen", "lasso", "theme", "color", "paint"]) bw.on(topic, drawSoon);
    bw.on("maps", () => {
      endWalk();
      drawSoon();
    });
    bw.on("morph", morph);
    bw.on("weights", moveMix);
    bw.on("settled", settleMix);
    bw.on("hover", ring);
    const resized = new ResizeObserver(drawSoon);
    bw.whenKnown(build);
  });

  /** Whether this is a phone: there, touching a map scrolls instead of zooming. */
  bw.narrow = () => window.matchMedia("(max-width: 760px)").matches;
})(window.bothways);
