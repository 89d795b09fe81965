// Where heads look: every head small, one of them large and as arcs, and one weight in numbers.

(function (bw) {
  "use strict";

  const FAINT = 0.15; // weights of other queries that are drawn as arcs
  const FIRST = { layer: 1, head: 0, direction: 0 };
  const ARROWS = { joint: "", forward: " \u2192", backward: " \u2190" };

  bw.part("heads", function (element, { trigger, props }) {
    const known = JSON.parse(props.value);
    let kind = known.with_heads[0];
    let chosen = FIRST; // head null: the rollout of a direction
    let pair = null; // positions of query and key, <S> being 0
    let held = null; // what the server told, with squares unpacked
    let shownKind = null; // whose heads were shown last: not the wanted kind while that is asked for
    let sent = 0;
    let cellSent = 0;
    let near = null;

    const kindButtons = known.with_heads.map((each) => bw.element("button", { type: "button", onclick: () => {
      kind = each;
      drawKinds();
      ask();
    } }));
    const kinds = bw.element("div", { class: "segmented", role: "group", "aria-label": "encoder" }, ...kindButtons);
    const notice = bw.element("p", { class: "notice", role: "status", hidden: true });
    const small = bw.element("div", { class: "head-grid" });
    const title = bw.element("h3", {});
    const facts = bw.element("p", { class: "foot" });
    const large = bw.element("div", { class: "head-large" });
    const canvas = new bw.GridCanvas({
      point: (place) => {
        if (String(place) === String(near)) return;
        near = place;
        drawLarge();
      },
      pick: (place) => pick(place),
      walk: ([rows, columns]) => pick([rows, columns].map((step, axis) =>
        Math.max(0, Math.min(held.tokens.length - 1, pair[axis] + step)))),
    });
    large.append(canvas.node);
    const arcs = bw.element("div", { class: "scroll head-arcs" });
    const numbers = bw.element("div", { class: "head-numbers" });
    const answer = bw.element("p", { class: "answer", role: "status" });
    const body = bw.element("div", {}, small,
      bw.element("div", { class: "head-columns" },
        bw.element("section", { class: "head-one" }, title, facts, large),
        bw.element("section", { class: "head-side" }, arcs, numbers)));
    const reach = bw.element("section", { class: "head-reach" });
    element.replaceChildren(bw.element("section", { class: "heads", "aria-label": "Where heads look" },
      bw.attentionViews(element, "heads"),
      bw.element("header", { class: "view-head" }, bw.element("h2", {}, "Which words does a head read?"),
        bw.element("span", { class: "method" }, "row: the word that reads (query) \u00b7 column: the word read (key)"
          + ` \u00b7 each row sums to 1 \u00b7 ${known.max_tokens} tokens at most`)),
      bw.element("div", { class: "controls" }, kinds), notice, body, answer, reach));

    function drawKinds() {
      const names = new Map(bw.encoderList().map((encoder) => [encoder.kind, encoder.name]));
      known.with_heads.forEach((each, i) => {
        kindButtons[i].textContent = names.get(each) || each;
        kindButtons[i].setAttribute("aria-pressed", String(each === kind));
      });
      bw.drawReach(reach, known.reach, names);
    }

    function say(text) {
      notice.hidden = !text;
      notice.textContent = text || "";
      body.hidden = Boolean(text);
      answer.hidden = Boolean(text);
    }

    const request = () => {
      const { layer, head } = chosen;
      return { request: sent, sentence: bw.state.chosen.sentence, kind, layer, head: head || 0,
        query: pair ? pair[0] : 0, key: pair ? pair[1] : 0 };
    };

    const ask = bw.asks(element, trigger, ["run", "chosen", "attentionView"], () => {
      const { run, chosen: { sentence, token } } = bw.state;
      const tokens = run.sentences[sentence];
      if (tokens.length > known.max_tokens) {
        held = null;
        sent += 1;
        say(`Sentence ${sentence + 1} has ${tokens.length} tokens. This view takes ${known.max_tokens} at most:`
          + " a head has a number for every pair of words.");
        return null;
      }
      const key = JSON.stringify([tokens, kind]);
      if (held && held.key === key) {
        sent += 1; // an answer still to come is for another choice
        say("");
        if (pair && pair[0] !== token + 1) pick([token + 1, strongest(token + 1)]);
        return null;
      }
      sent += 1;
      return request();
    });

    bw.on("heads", (view) => {
      if (!view) {
        held = null;
        say("The heads of this sentence could not be read.");
        return;
      }
      if (view.request !== sent) return;
      if (view.kind !== shownKind) chosen = FIRST; // others have other heads
      shownKind = view.kind;
      const tokens = ["<S>", ...view.tokens, "</S>"];
      const n = tokens.length;
      const stacks = view.stacks.map((stack) => ({ ...stack, heads: bw.unpackSquares(stack.heads, n, stack.direction),
        rollout: bw.unpackSquares(stack.rollout, n, stack.direction) }));
      held = { ...view, tokens, stacks, key: JSON.stringify([view.tokens, view.kind]), cell: null };
      say("");
      const query = bw.state.chosen.token + 1;
      pair = [query, strongest(query)];
      drawSmall();
      pick(pair);
    });

    /** The weights shown: {square, direction}. */
    function shown({ layer, head, direction } = chosen) {
      const stack = held.stacks[head === null ? direction : Math.floor(head / held.n_heads)];
      return { direction: stack.direction, stack, square: head === null ? stack.rollout[layer - 1]
        : stack.heads[(layer - 1) * held.n_heads + (head % held.n_heads)] };
    }

    function strongest(query) {
      const { square } = shown();
      const n = held.tokens.length;
      let best = 0;
      for (let key = 1; key < n; key++) if (square[query * n + key] > square[query * n + best]) best = key;
      return best;
    }

    function pick(place) {
      pair = place;
      held.cell = null;
      drawLarge();
      drawArcs();
      drawAnswer();
      drawNumbers();
      if (chosen.head === null) return;
      cellSent += 1;
      trigger("cell", { ...request(), kind: held.kind, request: cellSent });
    }

    bw.on("cell", (view) => {
      if (!view || !held || view.request !== cellSent) return;
      held.cell = view;
      drawNumbers();
    });

    // ---- every head, small -----------------------------------------------------------------------

    function choices() {
      const rows = [];
      for (let layer = 1; layer <= held.n_layers; layer++) {
        rows.push(held.stacks.flatMap((_, direction) => [
          ...Array.from({ length: held.n_heads }, (_, h) =>
            ({ layer, head: direction * held.n_heads + h, direction })),
          { layer, head: null, direction },
        ]));
      }
      return rows;
    }

    const nameOf = ({ head, direction }) => (head === null ? `rollout${ARROWS[held.stacks[direction].direction]}`
      : `head ${head + 1}${ARROWS[held.stacks[direction].direction]}`);

    const sameChoice = (a, b) => a.layer === b.layer && a.head === b.head && a.direction === b.direction;

    function drawSmall() {
      const rows = choices();
      small.style.setProperty("--columns", rows[0].length);
      small.dataset.encoder = held.kind;
      small.replaceChildren(...rows.flatMap((row, k) => [
        bw.element("b", { class: "row-name" }, `layer ${k + 1}`), ...row.map(smallMap)]));
    }

    function smallMap(choice) {
      const picture = bw.element("canvas", {});
      paint(picture, shown(choice));
      const { statistics } = held;
      const note = choice.head === null ? "" : `${statistics.entropy[choice.layer - 1][choice.head].toFixed(1)} bits`;
      const far = choice.head === null ? "" : `${statistics.distance[choice.layer - 1][choice.head].toFixed(1)} away`;
      return bw.element("button", { type: "button", class: "head-small", "data-layer": choice.layer,
        "data-head": choice.head === null ? "rollout" : choice.head, "aria-pressed": String(sameChoice(choice, chosen)),
        "aria-label": `layer ${choice.layer}, ${nameOf(choice)} ${note} ${far}`, onclick: () => {
          chosen = choice;
          small.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", String(
            Number(button.dataset.layer) === choice.layer
            && button.getAttribute("aria-label").startsWith(`layer ${choice.layer}, ${nameOf(choice)} `))));
          pick([pair[0], strongest(pair[0])]);
        } }, bw.element("span", {}, nameOf(choice)), picture, bw.element("small", {}, note), bw.element("small", {}, far));
    }

    /** One pixel a cell; the style makes it larger. */
    function paint(picture, { square, direction }) {
      const n = held.tokens.length;
      const colors = bw.ramp(held.kind);
      Object.assign(picture, { width: n, height: n });
      const context = picture.getContext("2d");
      for (let i = 0; i < n * n; i++) {
        context.fillStyle = bw.isOpenCell(direction, Math.floor(i / n), i % n)
          ? colors[Math.round(64 * Math.sqrt(square[i]))] : bw.color("line");
        context.fillRect(i % n, Math.floor(i / n), 1, 1);
      }
    }

    // ---- one head --------------------------------------------------------------------------------

    function drawLarge() {
      const n = held.tokens.length;
      const { square, direction, stack } = shown();
      const labels = bw.measureLabels(held.tokens, 7 * bw.size("small"));
      const left = labels.width + 12;
      const cell = Math.max(5, Math.min(30, Math.floor((large.clientWidth - left - 4) / n)));
      const states = Uint8Array.from(square, (_, i) => (bw.isOpenCell(direction, Math.floor(i / n), i % n) ? 2 : 0));
      canvas.draw({ n, cell, left, labels }, { value: square, states, top: 1, colors: bw.ramp(held.kind), stairs: false },
        { pair, near });
      canvas.node.setAttribute("aria-label", `${nameOf(chosen)}: ${held.tokens[pair[0]]} reads`
        + ` ${held.tokens[pair[1]]}: ${weightText(square, direction, pair)}. Arrow keys move.`);
      title.dataset.encoder = held.kind;
      title.textContent = `layer ${chosen.layer}, ${nameOf(chosen)}`;
      const [query, key] = near || pair;
      const { statistics: s } = held;
      const at = (name) => s[name][chosen.layer - 1][chosen.head];
      const percent = (x) => `${Math.round(100 * x)}\u00a0%`;
      const closed = stack.n_closed ? ` \u00b7 ${stack.n_zero.toLocaleString("en")} of`
        + ` ${stack.n_closed.toLocaleString("en")} closed cells of this stack exactly 0` : "";
      facts.replaceChildren(bw.element("b", {}, held.tokens[query]), ` (${query}) reads `,
        bw.element("b", {}, held.tokens[key]), ` (${key}): ${weightText(square, direction, [query, key])}`,
        bw.element("br", {}), chosen.head === null
          ? "Rollout (Abnar and Zuidema 2020): heads averaged, half of each word kept, layers multiplied up to this one"
          : `entropy ${at("entropy").toFixed(2)} bits \u00b7 mean distance ${at("distance").toFixed(2)} tokens \u00b7`
            + ` to the left ${percent(at("to_left"))}, itself ${percent(at("to_itself"))},`
            + ` boundaries ${percent(at("to_boundaries"))}`, closed);
    }

    function weightText(square, direction, [query, key]) {
      if (!bw.isOpenCell(direction, query, key)) return "exactly 0";
      const weight = square[query * held.tokens.length + key];
      return weight < 0.0001 ? "less than 0.0001" : weight.toFixed(4);
    }

    /** Arcs from the reading word to the words it reads; other words' arcs are faint. */
    function drawArcs() {
      const n = held.tokens.length;
      const { square } = shown();
      const size = bw.size("small");
      const labels = bw.measureLabels(held.tokens, 9 * size);
      const pitchOf = (room) => Math.max(size + 4, Math.min(64, room / n));
      const isSlanted = labels.width > pitchOf(arcs.clientWidth - 20) - 4;
      const start = isSlanted ? Math.ceil(labels.width * 0.5) : 0;
      const pitch = pitchOf(arcs.clientWidth - 20 - start);
      const x = (t) => 10 + (t + 0.5) * pitch;
      const width = start + n * pitch + 20;
      const high = Math.min(150, 24 + n * pitch * 0.32);
      const height = high + (isSlanted ? labels.width * 0.87 + 22 : size + 16);
      const path = (from, to) => {
        const top = Math.min(high - 8, 16 + Math.abs(to - from) * pitch * 0.34);
        if (from === to) return `M${x(from) - 5} ${high}C${x(from) - 12} ${high - 22} ${x(from) + 12} ${high - 22} ${x(from) + 5} ${high}`;
        return `M${x(from)} ${high}C${x(from)} ${high - 1.3 * top} ${x(to)} ${high - 1.3 * top} ${x(to)} ${high}`;
      };
      const picture = bw.svg("svg", { width, height, viewBox: `${-start} 0 ${width} ${height}`, role: "img",
        "data-encoder": held.kind, "aria-label": `what ${held.tokens[pair[0]]} reads` });
      for (let i = 0; i < n * n; i++) {
        const [query, key] = [Math.floor(i / n), i % n];
        const own = query === pair[0];
        if (square[i] < (own ? 0.01 : FAINT)) continue;
        picture.append(bw.svg("path", { class: own ? "own" : "other", d: path(query, key),
          "stroke-width": own ? 1 + 7 * square[i] : 1, opacity: own ? 0.35 + 0.65 * square[i] : 0.22 }));
      }
      labels.texts.forEach((text, t) => {
        const strong = t === pair[0] ? " query" : t === pair[1] ? " key" : "";
        const label = bw.svg("text", { class: `word${strong}`, ...(isSlanted
          ? { transform: `translate(${x(t) + 4} ${high + 10}) rotate(-60)`, "text-anchor": "end" }
          : { x: x(t), y: high + size + 4, "text-anchor": "middle" }) }, text);
        label.addEventListener("click", () => pick([t, strongest(t)]));
        picture.append(label);
      });
      arcs.replaceChildren(picture);
    }

    function drawAnswer() {
      const n = held.tokens.length;
      const [query] = pair;
      const { square } = shown();
      const best = strongest(query);
      const mean = Array.from({ length: n }, (_, t) => square[query * n + t]);
      const bits = mean.reduce((sum, p) => (p > 0 ? sum - p * Math.log2(p) : sum), 0);
      answer.replaceChildren(`Layer ${chosen.layer}, ${nameOf(chosen)}: `, bw.element("em", {}, held.tokens[query]),
        " reads ", bw.element("em", {}, held.tokens[best]), " most, with ",
        bw.element("b", { "data-encoder": held.kind }, square[query * n + best].toFixed(2)),
        ` of its attention; the whole row has ${bits.toFixed(1)} bits, as if ${(2 ** bits).toFixed(1)} words were read alike.`);
    }

    // ---- one weight ------------------------------------------------------------------------------

    function drawNumbers() {
      if (chosen.head === null) {
        numbers.replaceChildren(bw.element("p", { class: "notice" },
          "A rollout is a product of layers, not a softmax: choose a head to see one weight computed."));
        return;
      }
      const { cell, kind } = held;
      if (!cell) return;
      const isExact = cell.query_position === pair[0] && cell.key_position === pair[1]
        && cell.layer === chosen.layer && cell.head === chosen.head;
      if (!isExact) return;
      const [query, key] = pair.map((t) => held.tokens[t]);
      const score = cell.scores[pair[1]];
      const digits = (x) => (x === null ? "\u2212\u221e" : x.toFixed(4).replace("-", "\u2212"));
      const powers = cell.scores.map((x) => (x === null ? 0 : Math.exp(x)));
      const total = powers.reduce((a, b) => a + b, 0);
      const line = (...children) => bw.element("p", {}, ...children);
      numbers.replaceChildren(
        bw.element("h3", { "data-encoder": kind }, "One weight by hand: ", query, " reads ", key),
        line(`q \u00b7 k = ${digits(cell.dot)}, the sum of ${cell.products.length} products`),
        line(score === null ? `${key} is closed to ${query} in this stack: its score is \u2212\u221e`
          : `score = ${digits(cell.dot)} / \u221a${cell.products.length} = ${digits(cell.dot)} / ${digits(cell.scale)} = ${digits(score)}`),
        line(score === null ? "weight = 0, exactly"
          : `weight = e^${digits(score)} / sum of the row's = ${digits(powers[pair[1]])} / ${digits(total)} = `,
        score === null ? null : bw.element("b", { "data-encoder": kind }, cell.weights[pair[1]].toFixed(4))),
        bw.element("details", { class: "numbers" }, bw.element("summary", {}, "the row: every score and its softmax"),
          bw.element("div", { class: "scroll" }, bw.valuesTable([bw.element("b", {}, query), " reads"],
            [["score", kind], ["e^score", kind], ["weight", kind]],
            held.tokens.map((token, t) => [[`${t} `, bw.element(t === pair[1] ? "b" : "span", {}, token)],
              [digits(cell.scores[t]), digits(powers[t]), cell.scores[t] === null ? "exactly 0" : digits(cell.weights[t])]])))),
        bw.element("details", { class: "numbers" }, bw.element("summary", {}, `q, k and their ${cell.products.length} products`),
          bw.element("div", { class: "scroll" }, bw.valuesTable(["q of the query, k of the key, from this head"],
            [["q", kind], ["k", kind], ["q \u00d7 k", kind]],
            cell.products.map((product, i) => [[String(i + 1)], [digits(cell.query[i]), digits(cell.key[i]), digits(product)]])))));
    }

    function redraw() {
      if (!held || !element.clientWidth || body.hidden) return;
      drawSmall();
      drawLarge();
      drawArcs();
    }
    bw.on("theme", () => {
      redraw();
      drawKinds();
    });
    bw.whenKnown(drawKinds);
    bw.redraws(element, redraw);
  });
})(window.bothways);
