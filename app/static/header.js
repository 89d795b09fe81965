// The top bar, and the model cards behind "Models".

(function (bw) {
  "use strict";

  const POLL = 3000; // milliseconds, while WordNet is being read

  bw.part("top", function (element, { trigger, props }) {
    const cards = JSON.parse(props.value);
    const close = bw.element("button", { type: "button", class: "close", "aria-label": "close",
      onclick: () => dialog.close() }, "\u00d7");
    const dialog = bw.element("dialog", { class: "cards", "aria-label": "Models" },
      close, bw.element("h2", {}, "Models"),
      bw.element("div", { class: "card-columns" }, ...cards.map(card)));
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    const badge = bw.element("span", { class: "readiness", role: "status" });
    let polling = null;
    const tell = () => {
      if (!bw.state.pools) return;
      const { wordnet } = bw.state.pools;
      [badge.textContent, badge.title] = readiness(wordnet);
      clearTimeout(polling);
      if (isBeingRead(wordnet)) polling = setTimeout(() => trigger("status", {}), POLL);
    };
    bw.on("pools", tell);
    tell();
    element.replaceChildren(bw.element("header", { class: "top" },
      bw.element("h1", {}, "Both Ways"),
      bw.element("span", { class: "tagline" }, "concatenated against joint bidirectionality"), badge,
      bw.element("nav", {},
        bw.element("button", { type: "button", onclick: () => bw.emit("lecture") }, "Lecture"),
        bw.element("button", { type: "button", onclick: () => bw.emit("sharing") }, "Share"),
        bw.element("button", { type: "button", onclick: () => dialog.showModal() }, "Models"))),
      dialog);
  });

  const isBeingRead = ({ state }) => state === "opening" || state === "building";

  /** Whether everything is warm, in few words and in a sentence. */
  function readiness(wordnet) {
    const { state, done, total, encoder, message } = wordnet;
    const models = "Models are loaded, examples are encoded";
    if (isBeingRead(wordnet)) {
      const share = total ? ` ${Math.round((100 * done) / total)} %` : "";
      return [`\u25cb preparing WordNet${share}`, `${models}; WordNet\u2019s sentences are being read${encoder ? ` for ${encoder}` : ""}. The page can be used meanwhile.`];
    }
    const without = { off: "; WordNet is switched off", absent: "; WordNet is not installed", failed: `; without WordNet: ${message}` };
    return ["\u25cf ready", `${models}${without[state] || ", WordNet\u2019s sentences as well"}.`];
  }

  function card({ kind, name, facts, sources }) {
    const list = facts.flatMap(([label, value]) =>
      [bw.element("dt", {}, label), bw.element("dd", {}, value)]);
    const table = sources.length && bw.element("details", {},
      bw.element("summary", {}, `training text: ${sources.length} sources`),
      bw.element("ul", {}, ...sources.map(([source, licence, share]) =>
        bw.element("li", {}, bw.element("b", {}, source), ` ${share}`, bw.element("small", {}, licence)))));
    return bw.element("article", { "data-encoder": kind }, bw.element("h3", {}, name),
      bw.element("dl", {}, ...list), table || null);
  }
})(window.bothways);
