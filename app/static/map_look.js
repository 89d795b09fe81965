// What a row of maps says about itself and how its plots look.

(function (bw) {
  "use strict";

  const percent = (share) => `${Math.round(100 * share)}\u2009%`;

  /** How the maps were made and what they lose: {text, title}. gap: what the encoder could not read. */
  bw.mapCaption = function (encoder, gap) {
    const map = bw.state.maps.encoders[encoder];
    const { seed } = bw.state.maps;
    const parts = [{ word: `PCA of \u201c${bw.chosenWord()}\u201d`, all: "PCA of all layers",
      layers: "PCA of each layer, turned onto the one below", umap: `UMAP of each layer, seed ${seed}`,
      aligned: `aligned UMAP, seed ${seed}` }[map.basis]];
    if (!bw.state.bank.encoders[encoder].trained) parts.unshift("untrained: random weights");
    if (map.variance !== null) parts.push(`${percent(map.variance)} of variance`);
    parts.push(`${percent(map.neighbors)} of true neighbors kept`);
    if (!map.mixes) parts.push("no map of the mix");
    if (map.rows.length < map.n_tokens) parts.push(`${map.rows.length} of ${map.n_tokens} tokens drawn`);
    if (map.behind) {
      const { n, n_all: all } = map.behind;
      parts.push(`${n.toLocaleString("en")} of ${all.toLocaleString("en")} examples behind`);
    }
    if (map.outside) parts.push(`${map.outside} outside the frame`);
    if (gap) parts.push("long sentences left out");
    const layers = map.kept.map(([variance, neighbors], k) => `Layer ${k}: ${variance === null ? ""
      : `${percent(variance)} of variance, `}${percent(neighbors)} of true neighbors`);
    const about = ["Each map is in units of its own spread; the axes of all maps in the row are equally long."
      + " Shares: variance of the layers kept, and of each token's five nearest.", ...layers];
    return { text: parts.join(" \u00b7 "), title: [...about, ...(gap ? [gap] : [])].join("\n") };
  };

  /** Plotly's layout of a flat map that shows a frame, or what a visitor zoomed to. */
  bw.mapLayout = function (node, [left, right, bottom, top], zoom) {
    const axis = { visible: false, zeroline: false, showgrid: false };
    return {
      width: node.clientWidth, height: node.clientHeight,
      margin: { l: 0, r: 0, t: 0, b: 0 },
      xaxis: { ...axis, range: zoom ? [...zoom.x] : [left, right] },
      yaxis: { ...axis, range: zoom ? [...zoom.y] : [bottom, top], scaleanchor: "x", scaleratio: 1 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      showlegend: false, hovermode: "closest", dragmode: bw.narrow() ? false : "zoom",
      font: { family: "IBM Plex Sans, sans-serif", size: bw.size("small"), color: bw.color("ink") },
      hoverlabel: {
        bgcolor: bw.color("ground"), bordercolor: bw.color("line"),
        font: { family: "IBM Plex Sans, sans-serif", size: bw.size("small"), color: bw.color("ink") },
      },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: bw.color("second"),
        activecolor: bw.color("ink") },
      newselection: { line: { color: bw.color("second"), width: 1 } },
    };
  };

  /** For who cannot see the map: what it holds. The lists below say who is near whom. */
  bw.describeMap = function (encoder, { layer, traces }) {
    const name = layer === null ? "the mix" : `layer ${layer}`;
    const copies = traces.copies.length + traces.chosen.length;
    return `Map of ${name}, ${bw.state.bank.encoders[encoder].name}: ${bw.state.maps.encoders[encoder].rows.length} tokens,`
      + ` ${copies} of them \u201c${bw.chosenWord()}\u201d`;
  };

  /** The dot that is nearest to a tap on a panel, if one is near; -1 where none is. */
  bw.nearestDot = function ({ node, plot }, [x, y], event) {
    const box = node.getBoundingClientRect();
    let best = { distance: 24, i: -1 };
    for (let i = 0; i < x.length; i++) {
      const [px, py] = plot.toPixels(x[i], y[i]);
      const distance = Math.hypot(box.x + px - event.clientX, box.y + py - event.clientY);
      if (distance < best.distance) best = { distance, i };
    }
    return best.i;
  };

  /** All mixes of three layers, as a panel. */
  bw.trianglePanel = function () {
    const kind = bw.element("small", {});
    const host = bw.element("div", { class: "host" });
    const panel = bw.element("div", { class: "panel all-mixes" },
      bw.element("span", { class: "title" }, bw.element("b", {}, "All mixes"), " ", kind), host);
    bw.triangle(host);
    const tell = () => {
      if (!bw.state.query) return;
      const { asked, values } = bw.state.query.triangle || {};
      kind.textContent = values ? bw.QUESTIONS[asked] : "drag the dot";
      panel.title = values ? `${bw.QUESTIONS[asked]}: the share among the nearest, for every mix; the stronger the color, the higher` : "";
    };
    bw.on("query", tell);
    tell();
    return panel;
  };
})(window.bothways);
