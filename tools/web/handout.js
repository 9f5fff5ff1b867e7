// A picture that lives without a kernel: one slider chooses among the frames that were drawn when the page was built.
for (const figure of document.querySelectorAll(".live")) {
  const {folder, shown, sentences, title} = JSON.parse(figure.querySelector("script").textContent);
  const [slider, value, image, text] = ["input", "output", "img", "figcaption"].map(name => figure.querySelector(name));
  const show = () => {
    const at = slider.value;
    image.src = `${folder}/${at}.webp`;
    image.alt = `${title}. ${sentences[at]}`;
    text.textContent = sentences[at];
    value.textContent = shown[at];
    slider.setAttribute("aria-valuetext", shown[at]);
  };
  slider.addEventListener("input", show);
  slider.addEventListener("pointerenter", () => sentences.forEach((_, at) => new Image().src = `${folder}/${at}.webp`), {once: true});
  slider.value = slider.defaultValue;   // a browser may remember another one from before a reload
  slider.closest("label").hidden = false;
}

// What can be scrolled must be reached by keyboard.
for (const box of document.querySelectorAll(".scrolls"))
  if (box.scrollWidth > box.clientWidth) Object.assign(box, {tabIndex: 0, role: "region", ariaLabel: "wide content, scrolls"});

// Search by heading: HEADINGS is [page, id, words, chapter] for every heading of the course.
const box = document.querySelector(".search");
box.hidden = false;
box.querySelector("input").addEventListener("input", event => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length ? HEADINGS.filter(([, , text]) => words.every(word => text.toLowerCase().includes(word))) : [];
  box.querySelector("ul").replaceChildren(...found.slice(0, 20).map(([page, id, text, chapter]) => {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = `${page}#${encodeURIComponent(id)}`;
    link.textContent = text;
    item.append(link, ` (${chapter})`);
    return item;
  }));
  box.querySelector("[role=status]").textContent = !words.length ? "" :
    found.length > 20 ? `${found.length} headings, the first 20 shown` : `${found.length} heading${found.length === 1 ? "" : "s"}`;
});
