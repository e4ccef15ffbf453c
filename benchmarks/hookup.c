/* Prints the longest MPI_Init of all ranks, in seconds, once all have begun. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec + at.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  int rank;
  double begin = now(), took, most;
  MPI_Init(&argc, &argv);
  took = now() - begin;
  MPI_Reduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("%f\n", most);
  MPI_Finalize();
  return 0;
}
