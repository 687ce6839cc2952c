// Files attached to a message, with a preview, removable.

import { useApp, useStore } from "../context.ts";
import { formatSize } from "../format.ts";
import { withRoot } from "../root-path.ts";
import { IconButton } from "../widgets/buttons.tsx";
import { Icon } from "../widgets/icons.tsx";
import text from "../widgets/text.module.css";
import styles from "./Attachments.module.css";
import { unreadable, type useUploads } from "./use-uploads.ts";

interface Props {
  uploads: ReturnType<typeof useUploads>;
  /** Null: the default model. */
  modelId: string | null;
}

export default function Attachments({ uploads, modelId }: Props) {
  const { models, defaultModel } = useStore(useApp().catalog);
  const model = models.find((item) => item.id === (modelId ?? defaultModel));
  return (
    <ul className={styles.attachments} aria-label="Attachments">
      {uploads.files.map((file) => (
        <li key={file.file_id} className={text.chip}>
          {file.media_type.startsWith("image/") ? (
            <img src={withRoot(`/api/files/${file.file_id}/content`)} alt="" />
          ) : (
            <Icon name="file" />
          )}
          <span>{file.name}</span>
          <span className={text.quiet}>{formatSize(file.size)}</span>
          {unreadable(file, model) && (
            <span className={text.error} role="alert">
              {model?.name} {unreadable(file, model)}
            </span>
          )}
          <IconButton name={`Remove ${file.name}`} icon="close" onClick={() => uploads.remove(file.file_id)} />
        </li>
      ))}
      {uploads.pending.map((item) => (
        <li key={item.id} className={text.chip}>
          <span>{item.file.name}</span>
          <span className={item.problem ? text.error : text.quiet} role={item.problem ? "alert" : undefined}>
            {item.problem ?? "Uploading…"}
          </span>
          {item.problem && (
            <>
              {item.canRetry && (
                <IconButton name={`Retry ${item.file.name}`} icon="retry" onClick={() => uploads.retry(item)} />
              )}
              <IconButton name={`Dismiss ${item.file.name}`} icon="close" onClick={() => uploads.dismiss(item.id)} />
            </>
          )}
        </li>
      ))}
    </ul>
  );
}
