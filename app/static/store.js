// What the page knows, and who wants to hear of changes. Loaded first.
//
// The server tells the page about a text (run), its maps and the chosen token (query). Everything
// that moves while a slider is dragged is computed here from those, without asking it again.

window.bothways = window.bothways || {};

(function (bw) {
  "use strict";

  const listeners = new Map(); // topic -> callbacks
  const mounts = new Map(); // part of the page -> function that draws it

  bw.state = {
    bank: null, // candidate neighbors that every visitor has
    run: null, // the text: sentences, norms of its tokens
    maps: null, // coordinates by encoder
    query: null, // products of the chosen token with every candidate
    chosen: { sentence: 0, token: 0 },
    lasso: [], // [sentence, token] of tokens caught on a map
    metric: "centered", // see ranking.js
    filter: "all", // all | same | other: which words may be neighbors
    source: "all", // all | text | examples: where neighbors may stand
  };

  /** Calls fn whenever the topic changes. Topics: run, maps, query, chosen, lasso, ranking (metric
   *  or filters), weights (every frame of a drag), settled (the end of one), theme, busy. */
  bw.on = function (topic, fn) {
    if (!listeners.has(topic)) listeners.set(topic, new Set());
    listeners.get(topic).add(fn);
  };

  bw.emit = function (topic, detail) {
    for (const fn of listeners.get(topic) || []) {
      try {
        fn(detail);
      } catch (error) {
        console.error(`bothways ${topic}:`, error); // one broken view must not stop the others
      }
    }
  };

  /** Registers how a part of the page is drawn: fn(element, {trigger, props, watch, ...options}). */
  bw.part = function (name, fn) {
    mounts.set(name, fn);
  };

  /** Called by Gradio once for each part, when its element is on the page. */
  bw.mount = function (name, element, tools) {
    mounts.get(name)(element, tools);
  };

  /** Base64 of little-endian float32 numbers -> Float32Array. */
  bw.unpack = function (text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Float32Array(bytes.buffer);
  };

  /** A new element with attributes, then children (strings become text, never HTML). */
  bw.element = function (tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === false || value == null) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child != null));
    return node;
  };

  /** A color of palette.css as the theme has it now. */
  bw.color = function (name) {
    return getComputedStyle(document.body).getPropertyValue(`--${name}`).trim();
  };

  /** Text for a Plotly label, which would take "<S>" for a tag. */
  bw.escape = function (text) {
    return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  };

  /** Which word is chosen, as it is spelled in the text. */
  bw.chosenWord = function () {
    const { run, chosen } = bw.state;
    return run ? run.sentences[chosen.sentence][chosen.token] : "";
  };

  /** Whether two tokens are copies of one word; case does not matter. */
  bw.sameWord = function (a, b) {
    return a === b || a.toLowerCase() === b.toLowerCase();
  };

  /** Chooses a token here at once; the part that was clicked tells the server. */
  bw.choose = function (sentence, token) {
    bw.state.chosen = { sentence, token };
    bw.emit("chosen");
  };

  bw.isChosen = function (sentence, token) {
    return bw.state.chosen.sentence === sentence && bw.state.chosen.token === token;
  };

  /** Places of tokens with a vector in the rows' order: [[sentence, token], ...]. */
  bw.rowPlaces = function (sentences, present) {
    return present.flatMap((s) => sentences[s].map((_, t) => [s, t]));
  };

  // ---- from the server -------------------------------------------------------------------------

  function receive(message) {
    const state = bw.state;
    if (message.bank) {
      state.bank = message.bank;
      for (const encoder of Object.values(state.bank.encoders)) {
        encoder.places = bw.rowPlaces(state.bank.sentences, encoder.sentences);
        encoder.norms = bw.unpack(encoder.norms);
        encoder.mean_products = bw.unpack(encoder.mean_products);
      }
    }
    if (message.run) {
      state.run = message.run;
      state.lasso = [];
      for (const encoder of Object.values(state.run.encoders)) {
        encoder.places = bw.rowPlaces(state.run.sentences, encoder.sentences);
        encoder.norms = bw.unpack(encoder.norms);
        encoder.mean_products = bw.unpack(encoder.mean_products);
      }
    }
    if (message.maps) {
      state.maps = message.maps;
      for (const kind of ["bilm", "attention"]) {
        state.maps[kind].coordinates = bw.unpack(state.maps[kind].coordinates);
      }
    }
    const query = message.query;
    // A slow answer about a token that is no longer the chosen one is not shown.
    const current = query && (message.run || bw.isChosen(query.sentence, query.token));
    if (current) {
      for (const products of Object.values(query.encoders)) {
        if (!products) continue;
        products.bank = bw.unpack(products.bank);
        products.text = bw.unpack(products.text);
      }
      state.query = query;
      if (message.run) state.chosen = { sentence: query.sentence, token: query.token };
    }
    if (message.run) bw.emit("run");
    if (message.maps) bw.emit("maps");
    if (current) bw.emit("query");
    bw.emit("busy", false);
  }

  // The part of the page that carries messages; it shows nothing.
  bw.part("feed", function (element, { props, watch }) {
    const read = () => props.value && receive(JSON.parse(props.value));
    watch("value", read);
    read();
  });

  // The theme is a class on the body; colors of plots are read anew when it changes.
  let dark = null;
  new MutationObserver(() => {
    const now = document.body.classList.contains("dark");
    if (dark !== null && dark !== now) bw.emit("theme");
    dark = now;
  }).observe(document.documentElement, { attributes: true, subtree: true, attributeFilter: ["class"] });
})(window.bothways);
