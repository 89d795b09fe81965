// Neighbors of the chosen token: short lists below the maps. They are ranked here, on every frame of
// a drag; rows are kept and rewritten, not rebuilt. The Neighbors tab has the longer ones.

(function (bw) {
  "use strict";

  const LIST_ROWS = 5;
  const LEFT_CONTEXT = 14; // characters before the marked token in a short row

  /** What the lists are ranked by: the leading encoder's layers and mix, the others' mixes. layer:
   *  one layer alone, or null for the mix the visitor makes. */
  function columnsOf({ lead, encoders }) {
    const layers = Array.from({ length: encoders[lead].n_layers }, (_, layer) =>
      ({ encoder: lead, layer, name: `Layer ${layer}`, note: layer === 0 ? "characters only" : "" }));
    const others = Object.keys(encoders).filter((kind) => kind !== lead);
    return [...layers, { encoder: lead, layer: null, name: "Mix" },
      ...others.map((kind) => ({ encoder: kind, layer: null, name: `${encoders[kind].name} mix` }))];
  }

  function sharesOf({ encoder, layer }) {
    const { s } = bw.weights[encoder];
    return layer === null ? s : s.map((_, k) => Number(k === layer));
  }

  const gammaOf = ({ encoder, layer }) => (layer === null ? bw.weights[encoder].gamma : 1);

  function noteOf(column) {
    return column.layer === null ? bw.shareText(bw.weights[column.encoder].s) : column.note || "";
  }

  function scoreText(score) {
    return (Math.abs(score) < 99.995 ? score.toFixed(2) : score.toFixed(0)).replace("-", "\u2212");
  }

  /** How much of a bar a score fills: cosines from 0 to 1, others against the best of the list. */
  function barShare(score, best) {
    const { metric } = bw.state.near.choice;
    if (metric === "euclidean") return score > 0 ? best / score : 1;
    const top = metric === "dot" ? best : 1;
    return top > 0 ? Math.max(0, Math.min(1, score / top)) : 0;
  }

  /** Words before and after a token; a long left side keeps its end. */
  function context({ tokens, token }, leftLimit) {
    let left = tokens.slice(0, token).join(" ");
    if (left.length > leftLimit) {
      const cut = left.slice(left.length - leftLimit);
      left = cut.includes(" ") ? cut.slice(cut.indexOf(" ") + 1) : cut;
    }
    return [left && `${left} `, tokens[token], ` ${tokens.slice(token + 1).join(" ")}`];
  }

  const fullText = ({ tokens }) => tokens.join(" ");

  let isVisiting = false;

  /** Tells the server about a clicked neighbor: a token of the text is chosen; another sentence
   *  first joins the text. */
  function visit(place, trigger) {
    const { pool, number, token } = place;
    if (pool === "text") {
      bw.choose(number, token);
      trigger("select", bw.sent());
    } else if (!isVisiting) { // of a double click the first counts
      isVisiting = true;
      bw.emit("busy", true);
      trigger("visit", bw.sent({ pool, number, token }));
    }
  }
  bw.on("busy", (isBusy) => { isVisiting = isVisiting && isBusy; });

  // ---- the lists -------------------------------------------------------------------------------

  bw.part("lists", function (element, { trigger }) {
    const title = bw.element("h3", {});
    const where = bw.element("span", { class: "where" });
    const method = bw.element("span", { class: "method" });
    const columns = bw.element("div", { class: "columns" });
    let lists = [];
    element.replaceChildren(bw.element("section", { class: "lists", "aria-label": "Nearest neighbors" },
      bw.element("header", { class: "row-head" }, title, where, method),
      columns));

    function build() {
      const { lead, encoders } = bw.state.bank;
      const n = encoders[lead].n_layers + 2; // layers, mix, and the next encoder: one row; the tab has all
      lists = columnsOf(bw.state.bank).slice(0, n).map((column) => makeList(column, trigger));
      columns.replaceChildren(...lists.map((list) => list.element));
    }

    function draw() {
      const { run, chosen, near } = bw.state;
      if (!run || !near) return;
      const word = bw.chosenWord();
      const tokens = run.sentences[chosen.sentence];
      const [left, , right] = context({ tokens, token: chosen.token }, 60);
      title.replaceChildren("Nearest neighbors of ", bw.element("em", {}, word));
      where.replaceChildren("in \u201c", left, bw.element("b", {}, word), right, "\u201d");
      const more = bw.isWaiting() ? " \u00b7 reading WordNet \u2026" : "";
      method.textContent = `${bw.poolsText()} \u00b7 ${bw.nearText()}${more}`;
      lists.forEach((list) => list.draw());
      element.firstChild.classList.remove("stale");
    }

    bw.on("near", draw);
    bw.asksForMore(element, trigger);
    bw.on("weights", (kind) => lists.forEach((list) =>
      list.column.layer === null && list.column.encoder === kind && list.draw()));
    bw.on("chosen", () => element.firstChild.classList.add("stale"));
    bw.whenKnown(build);
    draw();
  });

  function makeList(column, trigger) {
    const note = bw.element("small", {});
    const message = bw.element("p", { class: "message", hidden: true });
    const rows = Array.from({ length: LIST_ROWS }, () => makeRow(trigger));
    const element = bw.element("div", { class: "list", "data-encoder": column.encoder,
      "data-layer": column.layer === null ? "mix" : column.layer },
      bw.element("h4", {}, column.name, " ", note), message,
      bw.element("ol", {}, ...rows.map((row) => row.element)));

    function draw() {
      note.textContent = noteOf(column);
      const set = bw.candidatesOf(column.encoder);
      message.hidden = Boolean(set);
      if (!set) message.textContent = bw.state.run.encoders[column.encoder].message || "";
      const found = set ? bw.rank(set, sharesOf(column), gammaOf(column), LIST_ROWS) : [];
      rows.forEach((row, i) => {
        row.element.hidden = !found[i];
        if (found[i]) row.show(bw.placeOf(set, found[i].index), found[i].score, found[0].score);
      });
    }
    return { element, column, draw };
  }

  /** One short row: context, marked token, score with a line as long as it is high. */
  function makeRow(trigger) {
    const left = document.createTextNode("");
    const right = document.createTextNode("");
    const word = bw.element("b", {});
    const score = bw.element("span", { class: "score" });
    const bar = bw.element("i", { class: "bar" });
    let place = null;
    const button = bw.element("button", { type: "button", class: "neighbor",
      onclick: () => visit(place, trigger) },
    bw.element("span", { class: "context" }, left, word, right), bar, score);
    const element = bw.element("li", {}, button);
    function show(next, value, best) {
      score.textContent = scoreText(value);
      bar.style.setProperty("--share", barShare(value, best).toFixed(3));
      if (place === next || (place && place.tokens === next.tokens && place.token === next.token)) return;
      place = next;
      const [before, token, after] = context(place, LEFT_CONTEXT);
      left.data = before;
      word.textContent = token;
      right.data = after;
      button.title = fullText(place);
    }
    return { element, show };
  }

  const encoderName = (kind) => bw.state.bank.encoders[kind].name;

  Object.assign(bw, { encoderName, sharesOf, gammaOf, noteOf, scoreText, barShare, context,
    fullText, visit });
})(window.bothways);
