# SPDX-License-Identifier: MIT
"""task_queue: a Celery application whose broker is a folder, QUEUE_FOLDER.

Once its worker is ready it sends itself QUEUE_TASKS tasks. Each burns 60 ms of
CPU in burn_task and leaves the pid of its process in QUEUE_FOLDER/done.
"""
import os
import time

import celery
from celery.signals import worker_ready

FOLDER = os.environ["QUEUE_FOLDER"]
BROKER = os.path.join(FOLDER, "broker")
os.makedirs(BROKER, exist_ok=True)

app = celery.Celery("task_queue", broker="filesystem://")
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=1, broker_connection_retry_on_startup=True, worker_proc_alive_timeout=60,
                broker_transport_options={"data_folder_in": BROKER, "data_folder_out": BROKER, "polling_interval": 0.02,
                                          "control_folder": os.path.join(FOLDER, "control")})


def burn_task():
    begin = time.thread_time()
    while time.thread_time() - begin < 0.06:
        sum(range(200))


@app.task(name="task_queue.work")
def work():
    burn_task()
    with open(os.path.join(FOLDER, "done"), "a", encoding="utf-8") as f:
        f.write("%d\n" % os.getpid())


@worker_ready.connect
def send(**_):
    for _ in range(int(os.environ["QUEUE_TASKS"])):
        work.delay()
