// The share panel: a link that holds the whole view, as text and as a QR code, and the opening of
// such a link; and the files there are to take home.

(function (bw) {
  "use strict";

  const MARK = "#view=";
  const HOME = [
    ["page", "This page", "one HTML file: sliders, maps and neighbors go on working without a server", "both-ways.html"],
    ["vectors", "Vectors, .npz", "every layer and the mix, for numpy.load", "both-ways-vectors.npz"],
    ["projector", "Vectors, .tsv", "the Embedding Projector\u2019s pair, zipped", "both-ways-projector.zip"],
  ];
  const isLoopback = (host) => host === "localhost" || host === "[::1]" || /^127\./.test(host);

  /** What only the page knows of the view; the server knows the rest. */
  function seen() {
    const tab = document.querySelector("#tabs [role=tab][aria-selected=true]");
    const weights = Object.fromEntries(Object.entries(bw.weights).map(([kind, { w, gamma }]) => [kind, [w, gamma]]));
    return { tab: tab ? tab.dataset.tabId : "", weights, options: bw.changedOptions() };
  }

  /** Hands the visitor a file. */
  bw.save = function (blob, name) {
    const link = bw.element("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  };

  /** What a link holds besides text and token. */
  function show({ weights, options, choice, tab }) {
    bw.emit("taken"); // ends a sweep that still runs
    for (const [kind, { w }] of Object.entries(bw.weights)) {
      const [raw, gamma] = weights[kind] || [new Array(w.length).fill(0), 1];
      bw.setWeights(kind, { w: raw, gamma });
    }
    bw.state.choice = choice;
    bw.setOptions(options);
    bw.emit("choice");
    if (tab) bw.openTab(tab);
  }
  bw.on("opened", show);

  bw.part("share", function (element, { trigger, props }) {
    const { lan } = JSON.parse(props.value);
    const isHere = isLoopback(location.hostname);
    const address = isHere && lan ? lan : location.origin + location.pathname;

    const link = bw.element("input", { type: "text", readonly: true, "aria-label": "link to this view",
      onfocus: () => link.select() });
    const copy = bw.element("button", { type: "button", class: "pill", onclick: copyLink }, "Copy");
    const path = bw.svg("path");
    const code = bw.svg("svg", { role: "img", "aria-label": "QR code of the link" }, path);
    const notes = bw.element("div", { class: "share-notes", role: "status" });
    const reach = bw.element("p", { class: "notice" }, isHere && !lan
      ? "Only this computer can open the link. For others in your network, start the page with "
      : "Whoever reaches this address can open the link; nothing of it is kept on the server.");
    if (isHere && !lan) reach.append(bw.element("code", {}, "python app.py --lan"), ".");
    const said = bw.element("p", { class: "notice", role: "status" });
    const shown = bw.element("div", {}); // the drawings of the open tab
    const home = bw.element("ul", { class: "home" }, ...HOME.map(([what, text, note]) => {
      const get = bw.element("button", { type: "button", class: "pill", "data-what": what,
        onclick: () => fetchFile(what, get) }, text);
      return bw.element("li", {}, get, bw.element("span", {}, note));
    }));
    const dialog = bw.element("dialog", { class: "cards share", "aria-label": "Share" },
      bw.element("button", { type: "button", class: "close", "aria-label": "close",
        onclick: () => dialog.close() }, "\u00d7"),
      bw.element("h2", {}, "Share"),
      bw.element("div", { class: "share-link" }, code,
        bw.element("div", {}, bw.element("p", {}, "This link opens what you see now: text, chosen token, mixes, tab and choices."),
          bw.element("div", { class: "share-row" }, link, copy), notes, reach)),
      bw.element("h3", {}, "Take home"), home, bw.element("h3", {}, "What this tab shows"), shown, said);
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    element.replaceChildren(dialog);

    let view = null; // as the server wrote it, of any length

    function ask() {
      link.value = "";
      view = null;
      said.textContent = "";
      copy.textContent = "Copy";
      code.classList.add("waiting");
      shown.replaceChildren(bw.picturesList((text) => { said.textContent = text; }, () => dialog.close()));
      dialog.showModal();
      trigger("link", { address, ...seen() });
    }

    function draw({ link: text, qr, notes: lines, view: whole }) {
      view = whole;
      link.value = text;
      code.setAttribute("viewBox", `0 0 ${qr.size} ${qr.size}`);
      code.classList.remove("waiting");
      path.setAttribute("d", qr.path);
      notes.replaceChildren(...lines.map((line) => bw.element("p", { class: "notice" }, line)));
    }

    /** Asks the server for a file of this view; it keeps neither. */
    async function fetchFile(what, button) {
      const [, text, , name] = HOME.find(([key]) => key === what);
      button.disabled = true;
      said.textContent = `${text} \u2026`;
      try {
        if (!view) throw new Error("The view is not known yet: wait for the link.");
        const answer = await fetch(`take-home/${what}`, { method: "POST", body: view });
        if (!answer.ok) throw new Error(await answer.text());
        const blob = await answer.blob();
        bw.save(blob, name);
        said.textContent = `${name}, ${(blob.size / 1e6).toFixed(1)} MB`;
      } catch (error) {
        said.textContent = String(error.message);
      }
      button.disabled = false;
    }

    async function copyLink() {
      try {
        await navigator.clipboard.writeText(link.value);
      } catch { // no permission, or no secure address
        link.select();
        document.execCommand("copy");
      }
      copy.textContent = "Copied";
    }

    function open() {
      if (!location.hash.startsWith(MARK)) return;
      bw.emit("busy", true);
      trigger("open", { code: location.hash.slice(MARK.length) });
    }

    bw.on("sharing", ask);
    bw.on("share", draw);
    window.addEventListener("hashchange", open);
    bw.whenFirst("run", () => requestAnimationFrame(open));
  });
})(window.bothways);
