const root = location.pathname.slice(0, -"/login".length); // the path below which this server is published
const form = document.getElementById("login");
const problem = document.getElementById("problem");
const button = form.querySelector("button");

const status = document.getElementById("status");
const waiting = "Too many wrong passwords came from your network. Your password will be checked in a moment.";
if (leftByChoice()) {
  status.textContent = "You’re logged out.";
} else if (new URLSearchParams(location.search).has("used_link")) {
  problem.textContent = "This login link has expired or was already used. Log in with your password, or create a new link.";
} else if (new URLSearchParams(location.search).has("logged_out")) {
  status.textContent = "You were logged out. Log in to continue where you were.";
}

/** Whether the user pressed Log out. */
function leftByChoice() {
  try {
    const left = sessionStorage.getItem("holdfast.left") !== null;
    sessionStorage.removeItem("holdfast.left");
    return left;
  } catch {
    return false; // storage is disabled
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.textContent = "";
  status.textContent = "";
  button.disabled = true;
  try {
    const response = await submitPassword(form.password.value);
    if (response.ok) {
      location.assign(destination());
      return;
    }
    const body = await response.json().catch(() => ({}));
    problem.textContent = body.detail || "Login failed. Try again.";
  } catch {
    problem.textContent = "The server is unreachable. Check that it is running.";
  }
  status.textContent = "";
  button.disabled = false;
  form.password.select();
});

/** The server answers as soon as it has checked the password, however long others keep it busy. A proxy may give up
 * before that, or the server restart: then the attempt is repeated for an hour. Any other problem is returned. */
async function submitPassword(password) {
  const startedAt = Date.now();
  for (let attempt = 0; ; attempt++) {
    const sentAt = Date.now();
    let response = null;
    let failure = null;
    const slow = setTimeout(() => {
      status.textContent = waiting;
    }, 2000);
    try {
      response = await fetch(`${root}/api/login`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ password }),
      });
    } catch (error) {
      failure = error;
    }
    clearTimeout(slow);
    const dropped = failure !== null && (attempt > 0 || Date.now() - sentAt > 5000);
    const timedOut = response?.status === 408 || response?.status === 504;
    const away = response?.status === 502 || (response?.status === 503 && (await isRestarting(response)));
    if (!(dropped || timedOut || away) || Date.now() - startedAt > 3_600_000) {
      if (response === null) throw failure;
      return response;
    }
    status.textContent = timedOut ? waiting : "The server is not reachable right now. Trying again…";
    await new Promise((resolve) => setTimeout(resolve, 1000 + 1000 * Math.random()));
  }
}

/** Whether the server stops, and not its proxy or its storage. */
async function isRestarting(response) {
  const body = await response
    .clone()
    .json()
    .catch(() => ({}));
  return body.type === "draining";
}

/** The page of this server that led here, or the start page. */
function destination() {
  try {
    const next = new URL(root + (new URLSearchParams(location.search).get("next") || "/"), location.origin);
    next.hash ||= location.hash;
    if (next.origin === location.origin && next.pathname !== location.pathname) return next.href;
  } catch {
    // Not an address.
  }
  return `${root}/`;
}
