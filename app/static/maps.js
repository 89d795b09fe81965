// Rows of token maps, one row an encoder: its layers and their mix, in one frame.

(function (bw) {
  "use strict";

  const ABOUT = {
    bilm: { name: "ELMo", note: "two LSTM stacks, concatenated" },
    attention: { name: "Self-attention", note: "one stack, joint" },
  };
  const SVG = "http://www.w3.org/2000/svg";
  const MAX_LABELS = 40;
  const RADIUS = { others: 2.5, caught: 3.5, copies: 4.5, chosen: 6.5 };

  const percent = (share) => `${Math.round(100 * share)}\u2009%`;

  bw.part("maps", function (element, { trigger, encoder }) {
    const L = bw.state.bank ? bw.state.bank.encoders[encoder].n_layers : bw.weights[encoder].w.length;
    const caption = bw.element("span", { class: "method" });
    const head = bw.element("header", { class: "row-head" },
      bw.element("h3", {}, ABOUT[encoder].name), bw.element("span", {}, ABOUT[encoder].note), caption);
    const grid = bw.element("div", { class: "panels" });
    const blank = bw.element("p", { class: "blank", hidden: true });
    const row = bw.element("section", { class: "map-row", "data-encoder": encoder,
      "aria-label": `Maps of ${ABOUT[encoder].name}` }, head, grid, blank);
    element.replaceChildren(row);

    const panels = Array.from({ length: L }, (_, layer) => makePanel(layer));
    panels.push(makePanel(null));
    const mix = panels[L];
    grid.append(...panels.map((panel) => panel.element));
    if (encoder === "bilm") grid.append(trianglePanel());

    let zoom = null; // {x, y} ranges of all panels, null for the whole frame
    let frame = ""; // zoom lasts until the frame changes

    // ---- panels ----------------------------------------------------------------------------------

    function makePanel(layer) {
      const title = bw.element("span", { class: "title" },
        bw.element("b", {}, layer === null ? "Mix" : `Layer ${layer}`), " ",
        bw.element("small", {}, layer === 0 ? "characters" : ""));
      const node = bw.element("div", { class: "plot", role: "img" });
      const labels = document.createElementNS(SVG, "svg");
      labels.setAttribute("class", "labels");
      const ring = bw.element("div", { class: "ring", hidden: true });
      const panel = {
        layer, title, labels, ring, node,
        element: bw.element("div", { class: layer === null ? "panel mix" : "panel" },
          title, labels, node, ring),
      };
      const choose = ([s, t]) => {
        bw.choose(s, t);
        trigger("select", { sentence: s, token: t });
      };
      // On a phone the map lets touches through, so that rows can be swiped; a tap takes the
      // nearest dot.
      panel.element.addEventListener("click", (event) => {
        const place = bw.narrow() && nearestPlace(panel, event);
        if (place) choose(place);
      });
      panel.plot = new bw.LivePlot(node, {
        click: choose,
        hover: (place) => bw.emit("hover", place),
        lasso: (places) => catchTokens(places),
        zoom: (ranges) => zoomTo(ranges),
        reset: () => zoomTo(null),
      });
      return panel;
    }

    /** The token whose dot is nearest to a tap, if one is near. */
    function nearestPlace(panel, event) {
      const box = panel.node.getBoundingClientRect();
      const [x, y] = positions(panel);
      let best = { distance: 24, i: -1 };
      for (let i = 0; i < x.length; i++) {
        const [px, py] = panel.plot.toPixels(x[i], y[i]);
        const distance = Math.hypot(box.x + px - event.clientX, box.y + py - event.clientY);
        if (distance < best.distance) best = { distance, i };
      }
      return best.i < 0 ? null : placeAt(best.i);
    }

    function trianglePanel() {
      const kind = bw.element("small", {});
      const host = bw.element("div", { class: "host" });
      const panel = bw.element("div", { class: "panel all-mixes" },
        bw.element("span", { class: "title" }, bw.element("b", {}, "All mixes"), " ", kind), host);
      bw.triangle(host);
      const tell = () => {
        if (!bw.state.query) return;
        const { kind: measure, values } = bw.state.query.triangle;
        kind.textContent = values ? measure : "drag the dot";
        panel.title = values
          ? `share of the ${measure} among the nearest, for every mix: dark is high` : "";
      };
      bw.on("query", tell);
      tell();
      return panel;
    }

    // ---- data ------------------------------------------------------------------------------------

    /** Which drawn rows belong to which trace. */
    function classify() {
      const { run, maps, lasso } = bw.state;
      const word = bw.chosenWord();
      const caught = new Set(lasso.map(([s, t]) => `${s} ${t}`));
      const traces = { others: [], caught: [], copies: [], chosen: [] };
      maps[encoder].rows.forEach((textRow, i) => {
        const [s, t] = run.encoders[encoder].places[textRow];
        if (bw.isChosen(s, t)) traces.chosen.push(i);
        else if (bw.sameWord(run.sentences[s][t], word)) traces.copies.push(i);
        else if (caught.has(`${s} ${t}`)) traces.caught.push(i);
        else traces.others.push(i);
      });
      return traces;
    }

    /** Coordinates of all drawn rows in a panel: [x, y]. */
    function positions(panel) {
      const map = bw.state.maps[encoder];
      const x = new Float64Array(map.rows.length);
      const y = new Float64Array(map.rows.length);
      const { s, gamma } = bw.weights[encoder];
      const factors = panel.layer === null
        ? bw.mixFactors(map, s, gamma) : s.map((_, k) => Number(k === panel.layer));
      bw.mixCoordinates(map.coordinates, factors, x, y);
      return [x, y];
    }

    const pick = (values, indices) => indices.map((i) => values[i]);
    const placeAt = (i) =>
      bw.state.run.encoders[encoder].places[bw.state.maps[encoder].rows[i]];

    function hoverText(i) {
      const [s, t] = placeAt(i);
      const { sentences, senses } = bw.state.run;
      const sense = senses && senses[s] && bw.sameWord(sentences[s][t], bw.chosenWord());
      const word = sentences[s][t];
      const short = word.length > 40 ? `${word.slice(0, 40)}\u2026` : word;
      return `<b>${bw.escape(short)}</b>  ${s + 1}${sense ? ` \u00b7 ${bw.escape(senses[s])}` : ""}`;
    }

    function makeTraces(panel) {
      const [x, y] = positions(panel);
      const color = bw.color(encoder);
      const ground = bw.color("ground");
      const style = {
        others: { color: bw.color("dot"), line: { width: 0 } },
        caught: { color: bw.color("second"), line: { width: 0 } },
        copies: { color, line: { width: 1, color: ground } },
        chosen: { color, line: { width: 2.5, color: bw.color("ink") } },
      };
      return Object.entries(panel.traces).map(([name, indices]) => ({
        type: "scatter", mode: "markers", name,
        x: pick(x, indices), y: pick(y, indices),
        customdata: indices.map(placeAt), text: indices.map(hoverText),
        hovertemplate: "%{text}<extra></extra>",
        marker: { size: 2 * RADIUS[name], opacity: 1, ...style[name] },
        selected: { marker: { opacity: 1 } }, unselected: { marker: { opacity: 1 } },
      }));
    }

    function makeLayout(panel) {
      const [left, right, bottom, top] = bw.state.maps[encoder].frame;
      const axis = { visible: false, zeroline: false, showgrid: false };
      return {
        width: panel.node.clientWidth, height: panel.node.clientHeight,
        margin: { l: 0, r: 0, t: 0, b: 0 },
        xaxis: { ...axis, range: zoom ? [...zoom.x] : [left, right] },
        yaxis: { ...axis, range: zoom ? [...zoom.y] : [bottom, top], scaleanchor: "x", scaleratio: 1 },
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        showlegend: false, hovermode: "closest", dragmode: bw.narrow() ? false : "zoom",
        font: { family: "IBM Plex Sans, sans-serif", size: 12.5, color: bw.color("ink") },
        hoverlabel: {
          bgcolor: bw.color("ground"), bordercolor: bw.color("line"),
          font: { family: "IBM Plex Sans, sans-serif", size: 13, color: bw.color("ink") },
        },
        modebar: { bgcolor: "rgba(0,0,0,0)", color: bw.color("second"),
          activecolor: bw.color("ink") },
        newselection: { line: { color: bw.color("second"), width: 1 } },
      };
    }

    // ---- drawing ---------------------------------------------------------------------------------

    function draw() {
      const { run, maps } = bw.state;
      if (!run || !maps) return;
      const gap = run.encoders[encoder].message;
      const isBlank = !maps[encoder].rows.length;
      grid.hidden = isBlank;
      blank.hidden = !isBlank;
      blank.textContent = isBlank ? gap : "";
      caption.textContent = isBlank ? "" : captionText(maps[encoder], gap);
      if (frame !== String(maps[encoder].frame)) zoom = null;
      frame = String(maps[encoder].frame);
      if (isBlank || !grid.clientWidth) return;
      const traces = classify();
      for (const panel of panels) {
        panel.traces = traces;
        panel.plot.draw(makeTraces(panel), makeLayout(panel));
        panel.node.setAttribute("aria-label", describe(panel));
        drawLabels(panel);
      }
      showShares();
    }

    function captionText(map, gap) {
      const parts = [map.basis === "word"
        ? `PCA of \u201c${bw.chosenWord()}\u201d` : "PCA of all layers"];
      caption.title = "Each map is in units of its own spread; both axes of all maps in the row are"
        + " equal. Shares: variance of the layers kept, and of each token's five nearest.";
      if (!bw.state.bank.encoders[encoder].trained) parts.unshift("untrained: random weights");
      parts.push(`${percent(map.variance)} of variance`,
        `${percent(map.neighbors)} of true neighbors kept`);
      if (map.rows.length < map.n_tokens) {
        parts.push(`${map.rows.length} of ${map.n_tokens} tokens drawn`);
      }
      if (map.outside) parts.push(`${map.outside} outside the frame`);
      if (gap) {
        parts.push("long sentences left out");
        caption.title = gap;
      }
      return parts.join(" \u00b7 ");
    }

    function showShares() {
      mix.title.querySelector("small").textContent = bw.shareText(bw.weights[encoder].s);
    }

    /** For who cannot see the map: what it holds. The lists below say who is near whom. */
    function describe({ layer, traces }) {
      const name = layer === null ? "the mix" : `layer ${layer}`;
      const copies = traces.copies.length + traces.chosen.length;
      return `Map of ${name}, ${ABOUT[encoder].name}: ${bw.state.maps[encoder].rows.length} tokens,`
        + ` ${copies} of them \u201c${bw.chosenWord()}\u201d`;
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
      const placed = bw.placeLabels(dots, others, ...plot.size());
      while (labels.childElementCount < placed.length) {
        labels.append(document.createElementNS(SVG, "text"));
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
      if (kind !== encoder || grid.hidden || !mix.traces) return;
      const xy = positions(mix);
      Object.values(mix.traces).forEach((indices, trace) =>
        mix.plot.move(trace, pick(xy[0], indices), pick(xy[1], indices)));
      drawLabels(mix, xy);
      showShares();
    }

    function settleMix(kind) {
      if (kind !== encoder || grid.hidden || !mix.traces) return;
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
      const row = place && bw.state.maps ? bw.state.maps[encoder].rows.findIndex((_, i) => {
        const [s, t] = placeAt(i);
        return s === place[0] && t === place[1];
      }) : -1;
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
      trigger("lasso", { tokens: places });
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
    for (const topic of ["run", "maps", "chosen", "lasso", "theme"]) bw.on(topic, drawSoon);
    bw.on("weights", moveMix);
    bw.on("settled", settleMix);
    bw.on("hover", ring);
    new ResizeObserver(drawSoon).observe(panels[0].node);
    drawSoon();
  });

  /** Whether this is a phone: there, touching a map scrolls instead of zooming. */
  bw.narrow = () => window.matchMedia("(max-width: 760px)").matches;
})(window.bothways);
