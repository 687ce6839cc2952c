"""SQL for saved prompts."""

from collections.abc import Sequence

from holdfast.core.ids import OwnerId, PromptId
from holdfast.core.saved_prompts import SavedPrompt
from holdfast.storage.sql.statements import Statements
from holdfast.storage.sql.tables import PROMPTS


class SqlPromptRows(Statements):
    def prompt(self, pid: PromptId) -> SavedPrompt | None:
        return self._select_one(PROMPTS, "WHERE id = ?", pid)

    def prompt_named(self, owner: OwnerId, name: str) -> SavedPrompt | None:
        return self._select_one(PROMPTS, "WHERE owner = ? AND name = ?", owner, name)

    def prompts(self, owner: OwnerId, limit: int, after: str = "") -> Sequence[SavedPrompt]:
        return self._select(PROMPTS, "WHERE owner = ? AND name > ? ORDER BY name LIMIT ?", owner, after, limit)

    def count_prompts(self, owner: OwnerId) -> int:
        ((count,),) = self._db.fetchall("SELECT count(*) FROM prompts WHERE owner = ?", owner)
        return int(count)

    def put_prompt(self, prompt: SavedPrompt) -> None:
        self._db.execute(PROMPTS.upsert, *PROMPTS.encode(prompt))

    def drop_prompt(self, pid: PromptId) -> None:
        self._db.execute("DELETE FROM prompts WHERE id = ?", pid)
