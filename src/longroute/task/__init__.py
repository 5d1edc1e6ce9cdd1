"""Tasks that only a model which uses its context can do: specs, seeded samples, and where their answers stand."""

from longroute.task.copy import Copy as Copy
from longroute.task.flip_flop import FlipFlop as FlipFlop
from longroute.task.mqar import MQAR as MQAR
from longroute.task.names import TASKS as TASKS
from longroute.task.names import Task as Task
from longroute.task.names import parse_task as parse_task
from longroute.task.names import task_name as task_name
from longroute.task.needle import Needle as Needle
from longroute.task.needle import Passkey as Passkey
from longroute.task.phone_book import PhoneBook as PhoneBook
from longroute.task.sampler import TaskSampler as TaskSampler
from longroute.task.samples import WINDOW as WINDOW
from longroute.task.samples import Hay as Hay
from longroute.task.samples import Samples as Samples
from longroute.task.samples import Source as Source
from longroute.task.split import draw_split as draw_split
from longroute.task.word_problem import WordProblem as WordProblem
