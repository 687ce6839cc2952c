// Links to snapshots of chats, newest first. Their addresses are not stored, so they cannot be shown here.

import { useCallback, useEffect, useState } from "react";
import { errorMessage } from "../../core/api.ts";
import type { ShareListResponse, ShareResponse } from "../../core/api-types.ts";
import { describeIncluded, listShares, revokeShare } from "../../core/share-links.ts";
import { useApp } from "../context.ts";
import { askConfirmation } from "../dialogs.ts";
import { formatSize, formatTime } from "../format.ts";
import { Link } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { Button } from "../widgets/buttons.tsx";
import { Item, ItemAction, ItemList } from "../widgets/ItemList.tsx";
import text from "../widgets/text.module.css";

export function Sharing() {
  const { api, env } = useApp();
  const [shares, setShares] = useState<ShareListResponse | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const load = useCallback(
    async (cursor: string | null = null) => {
      try {
        const page = await listShares(api, cursor);
        setShares((before) => (cursor && before ? { ...page, items: [...before.items, ...page.items] } : page));
        setProblem(null);
      } catch (error) {
        setProblem(errorMessage(error));
      }
    },
    [api],
  );
  useEffect(() => {
    void load();
    return env.onVisibilityChange(() => env.isHidden() || void load());
  }, [env, load]);
  const revoke = async (share: ShareResponse) => {
    const detail = "The link stops working at once, also for those who have opened it. This can’t be undone.";
    if (!(await askConfirmation(`Revoke the link to “${nameOf(share)}”?`, detail, "Revoke")).confirmed) return;
    const failed = await revokeShare(api, share.id).then(
      () => null,
      (error: unknown) => errorMessage(error),
    );
    await load();
    if (failed) setProblem(failed);
  };
  return (
    <>
      <p className={text.quiet}>
        Links to read-only copies of chats, which you create with <em>Share</em> in a chat’s menu. Anyone with a link
        can open it without logging in.
      </p>
      {problem && <Alert text={problem} />}
      {shares && !shares.items.length && <p className={text.quiet}>No shared links</p>}
      <ItemList label="Shared links">
        {shares?.items.map((share) => (
          <Item
            key={share.id}
            title={<Link href={`/c/${share.session_id}`}>{nameOf(share)}</Link>}
            facts={[
              share.kind === "text" ? "Text" : "Recording",
              formatSize(share.size),
              describeIncluded(share),
              `Created ${formatTime(share.created_at)}`,
              share.expires_at ? `Expires ${formatTime(share.expires_at)}` : "Never expires",
              share.last_opened_at ? `Last opened ${formatTime(share.last_opened_at)}` : "Not opened yet",
            ]}
          >
            <ItemAction name="Revoke" of={nameOf(share)} onClick={() => void revoke(share)} />
          </Item>
        ))}
      </ItemList>
      {shares?.next && <Button onClick={() => void load(shares.next)}>Load more</Button>}
    </>
  );
}

const nameOf = ({ title }: ShareResponse): string => title || "Untitled chat";
