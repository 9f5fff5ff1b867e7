// Shares out what does not fit on 1280 × 720 over sub-slides, then starts reveal.js. Sizes depend on the fonts of this
// machine, so this happens here and not when the deck is written.
const WIDTH = 1280, HEIGHT = 720, SPACE = HEIGHT - 28 - 30;   // margins above and below a sheet
const SHRINK = 0.8;      // a slide may get this much smaller before it is divided
const SMALLEST = 0.5;    // a single picture or listing may get this small

const height = sheet => sheet.scrollHeight;
const blocksOf = section => [...section.querySelectorAll(":scope > .part")].flatMap(part =>
  [...part.children].map(block => (part.classList.contains("step") && block.classList.add("fragment"), block)));

function sheetOf(blocks) {
  const sheet = document.createElement("div");
  sheet.className = "sheet";
  sheet.append(...blocks);
  return sheet;
}

// The largest scale from 1 down to `least` at which the sheet fits; 0 if there is none.
function fit(sheet, least) {
  for (let scale = 1; scale >= least - 1e-9; scale -= 0.05) {
    sheet.style.width = `${1200 / scale}px`;
    const wide = [...sheet.querySelectorAll(".scrolls, pre, img")].some(box => box.scrollWidth > box.clientWidth + 1);
    if (!wide && height(sheet) * scale <= SPACE) {
      sheet.style.transform = scale < 1 ? `scale(${scale})` : "";
      sheet.dataset.scale = scale.toFixed(2);
      return scale;
    }
  }
  return 0;
}

const isHeading = block => /^H[1-6]$/.test(block.tagName);

// Moves the blocks of a section onto as few sheets as hold them; returns one list of blocks a sheet.
function divide(section, blocks) {
  const pages = [];
  let rest = blocks;
  while (rest.length) {
    let count = rest.length;
    for (; count > 1; count--) {
      if (count < rest.length && isHeading(rest[count - 1])) continue;   // a heading stays with what follows
      section.replaceChildren(sheetOf(rest.slice(0, count)));
      if (fit(section.firstChild, SHRINK)) break;
    }
    if (count === 1 && isHeading(rest[0]) && rest.length > 1) count = 2;
    pages.push(rest.slice(0, count));
    rest = rest.slice(count);
  }
  return pages;
}

function layOut(section) {
  const notes = section.querySelector(":scope > aside.notes"), blocks = blocksOf(section);
  section.classList.add("measured");
  const pages = divide(section, blocks);
  section.replaceChildren();
  const sections = pages.map((_, at) => at ? document.createElement("section") : section);
  section.after(...sections.slice(1));
  sections.forEach((page, at) => {
    page.classList.add("measured");
    page.replaceChildren(sheetOf(pages[at]));
    if (!fit(page.firstChild, SMALLEST)) page.dataset.overflows = "";
    page.classList.remove("measured");
    page.append(notes.cloneNode(true));   // every part of a divided slide shows the speaker the same notes
  });
}

document.fonts.load("20px 'STIX Two Math'").then(() => document.fonts.ready).then(() => {
  const root = document.querySelector(".reveal .slides");
  Object.assign(root.style, {width: `${WIDTH}px`, display: "block"});
  for (const section of root.querySelectorAll(":scope > section")) {
    section.classList.add("measured");
    section.querySelectorAll(":scope > section").forEach(layOut);
    section.classList.remove("measured");
  }
  root.removeAttribute("style");
  return Reveal.initialize({width: WIDTH, height: HEIGHT, margin: 0, center: false, hash: true, transition: "none",
    slideNumber: "c/t", plugins: [RevealNotes]});
});
