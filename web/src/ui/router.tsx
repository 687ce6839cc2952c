// Routes: /, /new/{key} (a chat that is being created), /c/{session}, /runs/{run}, /projects,
// /projects/{project}, /compare, /activity, /settings and /setup.

import type { AnchorHTMLAttributes, MouseEvent } from "react";
import { Store } from "../core/store.ts";
import type { Session } from "../core/types.ts";
import { useStore } from "./context.ts";
import { withoutRoot, withRoot } from "./root-path.ts";

export type Route =
  | { readonly screen: "chat"; readonly sid: string | null }
  | { readonly screen: "pending-chat"; readonly key: string }
  | { readonly screen: "recorder"; readonly rid: string }
  | { readonly screen: "project"; readonly id: string }
  | { readonly screen: "projects" | "compare" | "activity" | "settings" | "setup" | "not-found" };

const path = new Store(withoutRoot(location.pathname));
/** The part of the page that the address names; an object, so that choosing it again scrolls to it again. */
const target = new Store({ hash: location.hash });
addEventListener("popstate", readAddress);

function readAddress(): void {
  path.set(withoutRoot(location.pathname));
  target.set({ hash: location.hash });
}

export function navigate(to: string, replace = false): void {
  const address = withRoot(to);
  const same = address === location.pathname + location.hash;
  if (replace || same || isDrawerEntry()) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  readAddress();
}

const DRAWER = "drawer";
const isDrawerEntry = (): boolean => history.state === DRAWER;

/** Adds a history entry for the open drawer, so that Back closes it. Navigating replaces the entry. */
export function openDrawerEntry(): void {
  if (!isDrawerEntry()) history.pushState(DRAWER, "", location.href);
}

/** Removes the entry of a drawer that was closed without going back or navigating. */
export function leaveDrawerEntry(): void {
  if (isDrawerEntry()) history.back();
}

export function parseRoute(pathname: string): Route {
  const [, first, second] = pathname.split("/");
  if (first === "c" && second) return { screen: "chat", sid: second };
  if (first === "new" && second) return { screen: "pending-chat", key: second };
  if (first === "runs" && second) return { screen: "recorder", rid: second };
  if (first === "projects" && second) return { screen: "project", id: decodeURIComponent(second) };
  if (first === "projects" || first === "compare" || first === "activity" || first === "settings" || first === "setup")
    return { screen: first };
  return pathname === "/" ? { screen: "chat", sid: null } : { screen: "not-found" };
}

/** The address of a chat; of a search result, that of the message that was found. */
export function chatAddress({ id, match }: Session): string {
  return `/c/${id}${match?.message_id ? `#${match.message_id}` : ""}`;
}

export function usePath(): string {
  return useStore(path);
}

export function useTarget(): { readonly hash: string } {
  return useStore(target);
}

export function Link({ href, onClick, ...rest }: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string }) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    navigate(href);
  };
  return <a href={withRoot(href)} onClick={follow} {...rest} />;
}
