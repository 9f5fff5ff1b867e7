// Type as large as the slide allows, then reveal.js. Sizes depend on the fonts of this machine, so this happens here.
const LARGEST = 28, SMALLEST = 21.5, ROOM = {width: 1280, height: 700};   // 0.85 of the smallest is 18

function fit(section) {
  section.classList.add("measured");
  const slots = [...section.querySelectorAll("pre")], overflows = () => {
    const top = section.getBoundingClientRect().top, seen = [...section.querySelectorAll("h1, h2, .part, .part > *, figcaption, .controls")];
    const left = section.querySelector(".controls")?.getBoundingClientRect().bottom ?? 0;
    return Math.max(left, ...seen.map(box => box.getBoundingClientRect().bottom)) - top > ROOM.height
      || slots.some(box => box.scrollWidth > box.clientWidth + 1) || section.scrollWidth > ROOM.width + 1;
  };
  for (let size = LARGEST; size >= SMALLEST; size -= 0.5) {
    section.style.fontSize = `${size}px`;
    if (!overflows()) break;
  }
  section.classList.remove("measured");
}

document.fonts.load("20px 'STIX Two Math'").then(() => document.fonts.ready).then(() => {
  document.querySelectorAll(".slides > section").forEach(fit);
  return Reveal.initialize({width: 1280, height: 720, margin: 0, center: false, hash: true, transition: "none", controls: false,
    navigationMode: "linear", slideNumber: "c/t", plugins: [RevealNotes]});
});

// A slider keeps the arrow keys while it has the focus. The keys of a presenter always turn slides, and a new slide begins
// without a focus.
addEventListener("keydown", event => {
  const step = {PageDown: "next", PageUp: "prev"}[event.key];
  if (event.key === "Escape" && document.activeElement.matches("input")) { document.activeElement.blur(); event.stopPropagation(); }
  if (step) { event.preventDefault(); event.stopPropagation(); Reveal[step](); }
}, true);
Reveal.on("slidechanged", () => document.activeElement?.blur());
