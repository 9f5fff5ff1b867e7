// A picture that lives without a kernel: its controls choose among the frames that were drawn when the page was built.
for (const figure of document.querySelectorAll("figure.live")) {
  const {folder, title, words, sentences, grounds, goes} = JSON.parse(figure.querySelector("script").textContent);
  const controls = [...figure.querySelectorAll(".slider, fieldset")];
  const [ground, frame] = figure.querySelectorAll("img"), text = figure.querySelector("figcaption");
  const file = name => `${folder}/${name}.webp`;
  const place = control => Number((control.querySelector("input:checked") ?? control.querySelector("input")).value);
  const put = (control, at, shown) => {
    const slider = control.querySelector("output") && control.querySelector("input");
    if (!slider) return control.querySelectorAll("input")[at].checked = true;
    slider.value = at;
    control.querySelector("output").textContent = shown;
    slider.setAttribute("aria-valuetext", shown);
  };
  const show = () => {
    let state = goes[controls.reduce((sum, control, k) => sum * words[k].length + place(control), 0)];
    [ground.src, frame.src] = [file(`ground-${grounds[state]}`), file(state)];
    ground.alt = `${title}. ${sentences[state]}`;
    text.textContent = sentences[state];
    for (const [k, control] of [...controls.entries()].reverse()) {
      put(control, state % words[k].length, words[k][state % words[k].length]);
      state = Math.floor(state / words[k].length);
    }
  };
  const fetchAll = () => new Set(goes).forEach(state => new Image().src = file(state));
  figure.addEventListener("input", show);
  for (const event of ["pointerenter", "focusin"]) figure.addEventListener(event, fetchAll, {once: true});
  figure.querySelector(".controls").hidden = false;
}

// What can be scrolled must be reached by keyboard.
for (const box of document.querySelectorAll(".formula"))
  if (box.scrollWidth > box.clientWidth) Object.assign(box, {tabIndex: 0, role: "group", ariaLabel: "wide formula, scrolls"});

// On paper a folded answer is open, since nobody can open it there.
// Bets (they have a name) stay as the reader left them: their results stand below.
addEventListener("beforeprint", () =>
    document.querySelectorAll("details:not([open], [name])").forEach(fold => fold.open = true));

// Sphinx looks for a word's stem, "entropi", in the text of a page found and shows what is around it: one letter less is there.
addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const around = Search.makeSearchSummary;
  Search.makeSearchSummary = (text, stems, ...rest) => around(text, [...stems].map(stem => stem.replace(/(?<=.{3})i$/, "")), ...rest);
});
