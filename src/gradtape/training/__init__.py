"""Training: `gt.fit`, and the parts of it for a loop by hand."""

from gradtape.advice.public import make_public as _make_public
from gradtape.training.callbacks import (
    Callback as Callback,
    EarlyStopping as EarlyStopping,
    KeepBest as KeepBest,
    ScheduleRate as ScheduleRate,
)
from gradtape.training.checkpoints import (
    Checkpoint as Checkpoint,
    load_checkpoint as load_checkpoint,
    save_checkpoint as save_checkpoint,
)
from gradtape.training.evaluation import evaluate as evaluate
from gradtape.training.logs import (
    CSVLog as CSVLog,
    JSONLog as JSONLog,
    TensorBoardLog as TensorBoardLog,
)
from gradtape.training.loop import fit as fit
from gradtape.training.progress import Progress as Progress
from gradtape.training.run import Run as Run, SaveEvery as SaveEvery
from gradtape.training.step import TrainingStep as TrainingStep
from gradtape.training.watching import (
    WatchGradients as WatchGradients,
    WatchMemory as WatchMemory,
)

_make_public(globals())
