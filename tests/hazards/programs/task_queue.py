# SPDX-License-Identifier: MIT
"""task_queue: a Celery application whose broker is a folder, QUEUE_FOLDER.

A task burns 60 ms of CPU in burn_task and leaves its pid as a line in
QUEUE_FOLDER/done. As a program: sends so many tasks.
"""
import os
import sys
import time

import celery

FOLDER = os.environ["QUEUE_FOLDER"]
BROKER = os.path.join(FOLDER, "broker")
os.makedirs(BROKER, exist_ok=True)

app = celery.Celery("task_queue", broker="filesystem://")
app.conf.update(broker_transport_options={"data_folder_in": BROKER, "data_folder_out": BROKER, "control_folder": os.path.join(FOLDER, "control")},
                worker_prefetch_multiplier=1, task_ignore_result=True, worker_hijack_root_logger=False)


def burn_task():
    begin = time.thread_time()
    while time.thread_time() - begin < 0.06:
        sum(range(200))


@app.task(name="task_queue.work")
def work():
    burn_task()
    with open(os.path.join(FOLDER, "done"), "a", encoding="utf-8") as f:
        f.write("%d\n" % os.getpid())


if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        work.delay()
