"""Commands and jobs in a pod, with our terminal and signals, and copies of files, over `kubectl exec`.

Doors: copy, inside, run, slurm, submitted, upload.
"""
