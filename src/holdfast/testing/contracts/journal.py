"""What every `Journal` does."""

from collections.abc import AsyncIterator

import pytest

from holdfast.ports import Journal
from holdfast.testing.contracts.journal_appends import Appends, Fences
from holdfast.testing.contracts.journal_keeping import Keeping
from holdfast.testing.contracts.journal_reads import Reads
from holdfast.testing.contracts.samples import MakeJournal


@pytest.mark.anyio
class JournalContract(Appends, Fences, Reads, Keeping):
    """Derive and add the fixture `make_journal` (see the package's docstring)."""

    @pytest.fixture
    async def journal(self, make_journal: MakeJournal) -> AsyncIterator[Journal]:
        async with make_journal() as journal:
            yield journal
