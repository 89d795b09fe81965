// The question above the maps with the choice of their axes, and the model cards behind "Models".

(function (bw) {
  "use strict";

  bw.part("question", function (element, { trigger }) {
    const title = bw.element("h2", {});
    const note = bw.element("span", { class: "note" });
    const notice = bw.element("p", { class: "notice", role: "status", hidden: true });
    const buttons = [["all", "all words"], ["word", "this word"]].map(([key, text]) =>
      bw.element("button", { type: "button", "data-key": key, "aria-pressed": String(key === "all"),
        onclick: () => {
          bw.emit("busy", true);
          trigger("basis", { basis: key });
        } }, text));
    buttons[0].title = "principal components of all our examples, fitted once";
    buttons[1].title = "principal components of the occurrences of the chosen word";
    element.replaceChildren(
      bw.element("header", { class: "view-head" }, title, note,
        bw.element("div", { class: "control" }, bw.element("span", {}, "axes from"),
          bw.element("div", { class: "segmented", role: "group", "aria-label": "axes from" }, ...buttons))),
      notice);

    function draw() {
      const { run } = bw.state;
      if (!run) return;
      const word = bw.chosenWord();
      title.textContent = run.question || `Where does each layer put \u201c${word}\u201d?`;
      note.textContent = run.note || "Copies of the chosen word are colored and carry the number of their sentence.";
      note.title = note.textContent;
    }

    function showBasis() {
      const { maps } = bw.state;
      notice.hidden = !maps.notice;
      notice.textContent = maps.notice || "";
      for (const button of buttons) {
        button.setAttribute("aria-pressed", String(button.dataset.key === maps.bilm.basis));
      }
    }

    bw.on("run", draw);
    bw.on("chosen", draw);
    bw.on("maps", showBasis);
    draw();
  });

  bw.part("top", function (element, { props }) {
    const cards = JSON.parse(props.value);
    const close = bw.element("button", { type: "button", class: "close", "aria-label": "close",
      onclick: () => dialog.close() }, "\u00d7");
    const dialog = bw.element("dialog", { class: "cards", "aria-label": "Models" },
      close, bw.element("h2", {}, "Models"),
      bw.element("div", { class: "card-columns" }, ...cards.map(card)));
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    element.replaceChildren(bw.element("header", { class: "top" },
      bw.element("h1", {}, "Both Ways"),
      bw.element("span", { class: "tagline" }, "concatenated against joint bidirectionality"),
      bw.element("nav", {}, bw.element("button", { type: "button", onclick: () => dialog.showModal() },
        "Models"))), dialog);
  });

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
