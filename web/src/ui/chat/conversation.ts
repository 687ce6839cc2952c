// The region of the page with the messages of the shown chat.

/** The attribute of the region. */
export const CONVERSATION = { "data-conversation": "" } as const;

export const findConversation = (): HTMLElement | null => document.querySelector<HTMLElement>("[data-conversation]");
