const form = document.getElementById("login");
const problem = document.getElementById("problem");
const button = form.querySelector("button");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.textContent = "";
  button.disabled = true;
  try {
    const answer = await fetch("/api/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ password: form.password.value }),
    });
    if (answer.ok) {
      location.assign("/");
      return;
    }
    const said = await answer.json().catch(() => ({}));
    problem.textContent = said.detail || "That did not work. Try again.";
  } catch {
    problem.textContent = "The server cannot be reached. Is it running?";
  }
  button.disabled = false;
  form.password.select();
});
