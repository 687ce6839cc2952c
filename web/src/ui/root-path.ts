// The path below which a reverse proxy publishes this app, such as /holdfast; empty if it has the whole host.

export const rootPath: string = globalThis.document?.documentElement.dataset.rootPath ?? "";

/** The address of a path of this server, as the browser needs it. */
export function withRoot(path: string): string {
  return rootPath + path;
}

/** The path of this app that an address names. */
export function withoutRoot(pathname: string): string {
  const isBelow = pathname === rootPath || pathname.startsWith(`${rootPath}/`);
  return (isBelow ? pathname.slice(rootPath.length) : pathname) || "/";
}
