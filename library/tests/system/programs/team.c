/* What the tests between real processes run as a rank. The commands given are done in turn:
 *   gather         an all_gather of the rank, checked
 *   barrier        with 20 s
 *   expect RANK    waits up to 20 s until RANK is lost
 *   fails          a barrier that must fail with peer_lost
 *   die RANK       that rank kills itself with SIGKILL
 *   stay           waits for a signal, at most 60 s
 *   again          frees the team and makes another
 *   twice          makes a second team beside the first
 *   repeat         an all_gather and a barrier that time out at rank 0 until the others are there
 *   child          a child of it is refused, and exits as a program does
 *   fork           leaves a child behind that holds every descriptor for 20 s
 * Writes one line for each thing found out. Exit code: 0, or the status of the call that failed, plus 10. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef WITH_MPI
#include "peerway/peerway_mpi.h"
#else
#include "peerway/peerway.h"
#endif

static const uint64_t second = 1000000000u;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void require(pw_status status, const char* action) {
  if (status == PW_OK) return;
  fprintf(stderr, "%s: %s: %s\n", action, pw_status_name(status), pw_error_message());
  exit(10 + (int)status);
}

static pw_team* open_team(void) {
  pw_team* team = NULL;
#ifdef WITH_MPI
  require(pw_team_from_mpi(MPI_COMM_WORLD, &team), "pw_team_from_mpi");
#else
  require(pw_team_from_launcher(&team), "pw_team_from_launcher");
#endif
  return team;
}

static void gather(pw_team* team) {
  int rank = pw_team_rank(team), size = pw_team_size(team);
  int* all = calloc((size_t)size, sizeof *all);
  require(pw_team_all_gather(team, all, &rank, sizeof rank, 20 * second), "all_gather");
  for (int i = 0; i < size; ++i)
    if (all[i] != i) exit(2);
  free(all);
  printf("gathered %d of %d\n", rank, size);
}

static int lost(pw_team* team, int rank) {
  int lost = 0;
  require(pw_team_lost(team, rank, &lost), "pw_team_lost");
  return lost;
}

static void expect(pw_team* team, int rank) {
  if (rank == pw_team_rank(team)) return;
  const double start = now();
  while (!lost(team, rank) && now() - start < 20) usleep(1000);
  printf("rank %d %s\n", rank, lost(team, rank) ? "is lost" : "is there");
  if (!lost(team, rank)) exit(3);
}

static void repeat(pw_team* team) {
  const int rank = pw_team_rank(team);
  if (rank != 0) usleep(50000);
  pw_status status;
  int all[64], timeouts = 0;
  while ((status = pw_team_all_gather(team, all, &rank, sizeof rank, second / 1000)) == PW_TIMEOUT)
    ++timeouts;
  require(status, "a repeated all_gather");
  for (int i = 0; i < pw_team_size(team); ++i)
    if (all[i] != i) exit(5);
  if (rank == 0 && pw_team_size(team) > 1 && timeouts == 0) exit(6);
  while ((status = pw_team_barrier(team, second / 1000)) == PW_TIMEOUT) continue;
  require(status, "a repeated barrier");
}

static void be_refused(pw_team* team) {
  const pid_t child = fork();
  if (child == 0) {
    pw_context* context = NULL;
    pw_team* other = NULL;
    if (pw_team_barrier(team, second) != PW_UNSUPPORTED) _exit(1);
    if (strstr(pw_error_message(), "a child that process") == NULL) _exit(2);
    if (pw_context_create(team, &context) != PW_UNSUPPORTED) _exit(3);
    if (pw_team_from_launcher(&other) != PW_UNSUPPORTED) _exit(4);
    if (pw_team_free(team) != PW_OK) _exit(5);
    exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) {
    fprintf(stderr, "the child ended with %#x\n", status);
    exit(7);
  }
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
#ifdef WITH_MPI
  MPI_Init(&argc, &argv);
#endif
  pw_team* team = open_team();
  const int rank = pw_team_rank(team);
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "gather")) gather(team);
    if (!strcmp(argv[i], "barrier")) require(pw_team_barrier(team, 20 * second), "barrier");
    if (!strcmp(argv[i], "expect")) expect(team, atoi(argv[++i]));
    if (!strcmp(argv[i], "fails")) {
      if (pw_team_barrier(team, 20 * second) != PW_PEER_LOST) exit(4);
      printf("%s\n", pw_error_message());
    }
    if (!strcmp(argv[i], "die") && atoi(argv[++i]) == rank) raise(SIGKILL);
    if (!strcmp(argv[i], "stay")) {
      printf("staying %d\n", (int)getpid());
      sleep(60);
    }
    if (!strcmp(argv[i], "again")) {
      pw_team_free(team);
      team = open_team();
    }
    if (!strcmp(argv[i], "twice")) {
      pw_team* second_team = open_team();
      gather(second_team);
      pw_team_free(second_team);
    }
    if (!strcmp(argv[i], "repeat")) repeat(team);
    if (!strcmp(argv[i], "child")) be_refused(team);
    if (!strcmp(argv[i], "fork") && fork() == 0) {
      sleep(20);
      _exit(0);
    }
  }
  pw_team_free(team);
#ifdef WITH_MPI
  MPI_Finalize();
#endif
  return 0;
}
