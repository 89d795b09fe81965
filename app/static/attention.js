// What the two views of the tab Attention share: which one is shown, weights unpacked, half-lives.

(function (bw) {
  "use strict";

  const FULL = 65535; // how a weight of 1 travels

  bw.state.attentionView = "heads";

  const shownButton = () => [...document.querySelectorAll(".attention-views [aria-pressed=true]")]
    .find((button) => button.offsetParent);

  /** Which of the tab's two views is shown; each of them carries one. */
  bw.attentionViews = function (element, own) {
    const views = [["heads", "Where they look"], ["learning", "How they learn"]];
    const show = () => { element.hidden = bw.state.attentionView !== own; };
    bw.on("attentionView", show);
    show();
    return bw.element("div", { class: "segmented attention-views", role: "group", "aria-label": "view" },
      ...views.map(([key, text]) => bw.element("button", { type: "button", "aria-pressed": String(key === own),
        onclick: () => {
          bw.state.attentionView = key;
          bw.emit("attentionView");
          shownButton()?.focus(); // each view has buttons of its own
        } }, text)));
  };

  /** Base64 of 16-bit shares -> n * n squares, one after the other; closed cells are 0. */
  bw.unpackSquares = function (text, n, direction) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const shares = new Uint16Array(bytes.buffer);
    const open = [];
    for (let i = 0; i < n * n; i++) if (bw.isOpenCell(direction, Math.floor(i / n), i % n)) open.push(i);
    const squares = [];
    for (let start = 0; start < shares.length; start += open.length) {
      const square = new Float32Array(n * n);
      open.forEach((i, a) => { square[i] = shares[start + a] / FULL; });
      squares.push(square);
    }
    return squares;
  };

  /** May a query look at a key? */
  bw.isOpenCell = (direction, query, key) =>
    direction === "joint" || (direction === "forward" ? key <= query : key >= query);

  /** names: a Map from kind to name. Half-lives of the whole vectors, of every encoder and layer. */
  bw.drawReach = function (node, reach, names) {
    const kinds = Object.keys(reach.encoders);
    const head = bw.element("header", { class: "view-head" },
      bw.element("h2", {}, "An LSTM has no heads: how long does a word\u2019s influence last?"),
      bw.element("span", { class: "method" }, `tokens beyond the next one until influence halves \u00b7 ${reach.measure}`
        + ` \u00b7 ${reach.n_sentences} sentences of at most ${reach.longest} tokens`));
    if (!kinds.length) {
      node.replaceChildren(head, bw.element("p", { class: "notice" }, "Measured with trained weights, and none were found."));
      return;
    }
    const text = (x) => (x === null ? "\u2013" : x === "inf" ? `over ${reach.longest - 2}` : x.toFixed(1));
    const numbers = kinds.flatMap((kind) => reach.encoders[kind].half_life.flat()).filter((x) => typeof x === "number");
    const top = Math.max(...numbers, 1);
    const bar = (kind, k) => {
      const [whole] = reach.encoders[kind].half_life;
      const share = whole[k] === "inf" ? 1 : whole[k] === null ? 0 : whole[k] / top;
      const [low, high] = reach.encoders[kind].half_life_interval.map((bound) => text(bound[0][k]));
      return bw.element("li", {}, bw.element("span", {}, `layer ${k}`),
        bw.element("i", { style: `width:${(60 * share).toFixed(1)}%` }), bw.element("b", {}, text(whole[k])),
        bw.element("small", {}, `${low} to ${high}`));
    };
    const halves = kinds.filter((kind) => reach.encoders[kind].parts.length > 1);
    const sides = bw.element("details", { class: "numbers" }, bw.element("summary", {}, "each half on its own"),
      ...halves.map((kind) => bw.valuesTable([names.get(kind) || kind],
        reach.encoders[kind].half_life[0].slice(1).map((_, k) => [`layer ${k + 1}`, kind]),
        reach.encoders[kind].parts.map((part, p) => [[part], reach.encoders[kind].half_life[p].slice(1).map(text)]))));
    const lead = reach.encoders.bilm && reach.encoders.bilm.half_life[0];
    node.replaceChildren(head, bw.element("div", { class: "reach-columns" }, ...kinds.map((kind) =>
      bw.element("div", { "data-encoder": kind }, bw.element("h3", {}, names.get(kind) || kind),
        bw.element("ol", {}, ...reach.encoders[kind].half_life[0].slice(1).map((_, k) => bar(kind, k + 1)))))), sides,
    bw.element("p", { class: "answer" }, lead ? `In the shipped ELMo influence halves within ${text(lead[1])} tokens in layer 1`
      + ` and ${text(lead[2])} in layer 2: near context below, wider context above.` : ""));
  };
})(window.bothways);
