// Neighbors of the chosen token: five short lists below the maps, and one long table. Both are
// ranked here, on every frame of a drag; rows are kept and rewritten, not rebuilt.

(function (bw) {
  "use strict";

  const LIST_ROWS = 5;
  const TABLE_ROWS = 20;
  const LEFT_CONTEXT = 14; // characters before the marked token in a short row

  // What a list is ranked by. layer: one layer alone, or null for the mix the visitor makes.
  const COLUMNS = [
    { encoder: "bilm", layer: 0, name: "Layer 0", note: "characters only" },
    { encoder: "bilm", layer: 1, name: "Layer 1" },
    { encoder: "bilm", layer: 2, name: "Layer 2" },
    { encoder: "bilm", layer: null, name: "Mix" },
    { encoder: "attention", layer: null, name: "Self-attention mix" },
  ];

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
    const { metric } = bw.state;
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

  /** Tells the server about a clicked neighbor: a token of the text is chosen; a sentence of the
   *  examples first joins the text. */
  function visit(place, trigger) {
    const detail = { sentence: place.sentence, token: place.token };
    if (place.source === "text") {
      bw.choose(place.sentence, place.token);
      trigger("select", detail);
    } else {
      bw.emit("busy", true);
      trigger("visit", detail);
    }
  }

  // ---- five lists ------------------------------------------------------------------------------

  bw.part("lists", function (element, { trigger }) {
    const title = bw.element("h3", {});
    const where = bw.element("span", { class: "where" });
    const method = bw.element("span", { class: "method" });
    const lists = COLUMNS.map((column) => makeList(column, trigger));
    element.replaceChildren(bw.element("section", { class: "lists", "aria-label": "Nearest neighbors" },
      bw.element("header", { class: "row-head" }, title, where, method),
      bw.element("div", { class: "columns" }, ...lists.map((list) => list.element))));

    function draw() {
      const { run, chosen, bank, metric } = bw.state;
      if (!run || !bw.state.query) return;
      const word = bw.chosenWord();
      const tokens = run.sentences[chosen.sentence];
      const [left, , right] = context({ tokens, token: chosen.token }, 60);
      title.replaceChildren("Nearest neighbors of ", bw.element("em", {}, word));
      where.replaceChildren("in \u201c", left, bw.element("b", {}, word), right, "\u201d");
      const n = run.sentences.length;
      method.textContent = `${n} sentence${n === 1 ? "" : "s"} + ${bank.sentences.length} of our`
        + ` examples \u00b7 ${bw.METRICS[metric].label}`;
      lists.forEach((list) => list.draw());
      element.firstChild.classList.remove("stale");
    }

    bw.on("query", draw);
    bw.on("ranking", draw);
    bw.on("weights", (kind) => lists.forEach((list) =>
      list.column.layer === null && list.column.encoder === kind && list.draw()));
    bw.on("chosen", () => element.firstChild.classList.add("stale"));
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

  // ---- the table -------------------------------------------------------------------------------

  bw.part("table", function (element, { trigger }) {
    let sorted = 3; // the column the table is ranked by: the mix
    let isShown = false; // nothing is drawn while another tab is open
    const rows = [];

    const where = bw.element("span", { class: "where" });
    const title = bw.element("h2", {});
    const method = bw.element("span", { class: "method" });
    const choices = [
      choice("metric", "near by", Object.entries(bw.METRICS).map(([key, { label }]) => [key, label])),
      choice("filter", "words", [["all", "all"], ["same", "this one"], ["other", "others"]]),
      choice("source", "from", [["all", "everywhere"], ["text", "your text"], ["examples", "our examples"]]),
    ];
    const headers = COLUMNS.map((column, i) => {
      const note = bw.element("small", {});
      const button = bw.element("button", { type: "button", onclick: () => sortBy(i) }, column.name, note);
      return { note, button, cell: bw.element("th", { scope: "col", "data-encoder": column.encoder },
        button) };
    });
    const body = bw.element("tbody", {});
    const empty = bw.element("p", { class: "message", hidden: true });
    const table = bw.element("table", { class: "neighbors" },
      bw.element("thead", {}, bw.element("tr", {},
        bw.element("th", { scope: "col", class: "rank" }, ""),
        bw.element("th", { scope: "col", class: "sentence" }, "in its sentence"),
        ...headers.map((header) => header.cell))),
      body);
    element.replaceChildren(bw.element("section", { class: "table-view" },
      bw.element("header", { class: "view-head" }, title, where, method),
      bw.element("div", { class: "controls" }, ...choices),
      bw.element("div", { class: "scroll" }, table), empty));

    function choice(name, label, options) {
      const buttons = options.map(([key, text]) => bw.element("button", {
        type: "button", "data-key": key, onclick: () => {
          bw.state[name] = key;
          bw.emit("ranking");
        },
      }, text));
      const group = bw.element("div", { class: "segmented", role: "group", "aria-label": label },
        ...buttons);
      const mark = () => buttons.forEach((button) =>
        button.setAttribute("aria-pressed", String(button.dataset.key === bw.state[name])));
      bw.on("ranking", mark);
      mark();
      return bw.element("div", { class: "control" }, bw.element("span", {}, label), group);
    }

    function sortBy(i) {
      sorted = i;
      draw();
      headers[i].cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    }

    function draw() {
      if (!bw.state.query || !bw.state.run || !isShown) return;
      const { run, chosen } = bw.state;
      const word = bw.chosenWord();
      const [left, , right] = context({ tokens: run.sentences[chosen.sentence], token: chosen.token }, 60);
      title.replaceChildren("Who keeps company with ", bw.element("em", {}, word), "?");
      where.replaceChildren("in \u201c", left, bw.element("b", {}, word), right, "\u201d");
      method.textContent = "click a column to rank by it; click a row to go there";
      rank();
      element.firstChild.classList.remove("stale");
    }

    /** The nearest by the sorted column, with their scores by every other column beside. */
    function rank() {
      const column = COLUMNS[sorted];
      headers.forEach(({ note, button, cell }, i) => {
        note.textContent = noteOf(COLUMNS[i]) || "\u00a0";
        cell.setAttribute("aria-sort", i === sorted
          ? (bw.METRICS[bw.state.metric].smallerIsNearer ? "ascending" : "descending") : "none");
        button.setAttribute("aria-pressed", String(i === sorted));
      });
      const set = bw.candidatesOf(column.encoder);
      const found = set ? bw.rank(set, sharesOf(column), gammaOf(column), TABLE_ROWS) : [];
      const gap = bw.state.run.encoders[column.encoder].message;
      empty.hidden = found.length > 0;
      empty.textContent = set ? "No token fits these filters." : gap || "";
      table.hidden = !found.length;
      while (rows.length < found.length) {
        rows.push(makeTableRow(trigger));
        body.append(rows[rows.length - 1].element);
      }
      rows.forEach((row, i) => {
        row.element.hidden = !found[i];
        if (!found[i]) return;
        const place = bw.placeOf(set, found[i].index);
        row.show(i, place, COLUMNS.map((other) => scoreIn(other, column, place, found[i])), sorted,
          found[0].score);
      });
    }

    /** A place's score under another column; null where that encoder could not read it. */
    function scoreIn(other, column, place, hit) {
      if (other === column) return hit.score;
      const set = bw.candidatesOf(other.encoder);
      if (!set) return null;
      const index = other.encoder === column.encoder ? hit.index : indexOf(set, place);
      return index < 0 ? null : bw.scoreOf(set, index, sharesOf(other), gammaOf(other));
    }

    function indexOf(set, place) {
      const inBank = place.source === "examples";
      const pool = (inBank ? bw.state.bank : bw.state.run).encoders[set.kind];
      pool.index ||= new Map(pool.places.map(([s, t], i) => [`${s} ${t}`, i]));
      const at = pool.index.get(`${place.sentence} ${place.token}`);
      return at === undefined ? -1 : at + (inBank ? 0 : set.n[0]);
    }

    bw.on("query", draw);
    bw.on("ranking", draw);
    bw.on("weights", () => bw.state.query && isShown && rank());
    bw.on("chosen", () => element.firstChild.classList.add("stale"));
    new ResizeObserver(() => {
      const wasShown = isShown;
      isShown = element.clientWidth > 0;
      if (isShown && !wasShown) draw();
    }).observe(element);
  });

  function makeTableRow(trigger) {
    const number = bw.element("td", { class: "rank" });
    const left = document.createTextNode("");
    const right = document.createTextNode("");
    const word = bw.element("b", {});
    const origin = bw.element("small", {});
    let place = null;
    const button = bw.element("button", { type: "button", class: "neighbor",
      onclick: () => visit(place, trigger) },
    bw.element("span", { class: "context" }, left, word, right), origin);
    const cells = COLUMNS.map((column) => {
      const text = bw.element("span", { class: "score" });
      const bar = bw.element("i", { class: "bar" });
      const cell = bw.element("td", { class: "value", "data-encoder": column.encoder }, bar, text);
      return { cell, text, bar };
    });
    const element = bw.element("tr", {}, number,
      bw.element("td", { class: "sentence" }, button), ...cells.map(({ cell }) => cell));

    function show(index, next, scores, sorted, best) {
      number.textContent = index + 1;
      cells.forEach(({ cell, text, bar }, i) => {
        cell.classList.toggle("sorted", i === sorted);
        text.textContent = scores[i] === null ? "\u2013" : scoreText(scores[i]);
        bar.style.setProperty("--share",
          scores[i] === null ? 0 : barShare(scores[i], i === sorted ? best : scores[i]).toFixed(3));
        bar.hidden = bw.state.metric === "dot" || bw.state.metric === "euclidean" ? i !== sorted : false;
      });
      place = next;
      const [before, token, after] = context(place, bw.narrow() ? 16 : 28);
      left.data = before;
      word.textContent = token;
      right.data = after;
      button.title = fullText(place);
      const sense = place.source === "examples" && bw.state.bank.senses[place.sentence];
      const known = sense && sense[0] && bw.sameWord(sense[0], token) ? sense[1] : "";
      const own = place.source === "text" ? `your sentence ${place.sentence + 1}` : "";
      origin.textContent = known || own;
    }
    return { element, show };
  }
})(window.bothways);
