/* Requests that share handles, found complete by each call that can do so. Two ranks. Besides what
 * mpi_report.h counts, each rank logs for each message when it started it, found it complete, or received
 * it, one line each in the file argv[1] followed by the rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi_report.h"

enum { kMessages = 12, kLargest = 8 * kMessages };

static int rank, other, shared; /* shared: requests whose handle another one under way has, too */
static char out[kLargest], in[kMessages][kLargest];
static FILE* log_file;

static void tell(const char* event, int tag, int bytes) {
  fprintf(log_file, "%s %d %d\n", event, tag, bytes);
}

static int size_of(int i) { return 8 * (i + 1); }

static void sent(int tag, int bytes) {
  tell("sent", tag, bytes);
  moved_to(&messages_moved, other, (size_t)bytes);
}

/* Finds complete requests by one of MPI's calls; returns how many it found. */
typedef int Finder(MPI_Request* requests, int* indices);

static int wait_all(MPI_Request* requests, int* indices) {
  MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kMessages; ++i) indices[i] = i;
  return kMessages;
}
static int test_all(MPI_Request* requests, int* indices) {
  int flag = 0;
  while (!flag) MPI_Testall(kMessages, requests, &flag, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kMessages; ++i) indices[i] = i;
  return kMessages;
}
static int wait_any(MPI_Request* requests, int* indices) {
  MPI_Waitany(kMessages, requests, indices, MPI_STATUS_IGNORE);
  return 1;
}
static int test_any(MPI_Request* requests, int* indices) {
  int flag = 0;
  while (!flag) MPI_Testany(kMessages, requests, indices, &flag, MPI_STATUS_IGNORE);
  return 1;
}
static int wait_some(MPI_Request* requests, int* indices) {
  int count = 0;
  MPI_Waitsome(kMessages, requests, &count, indices, MPI_STATUSES_IGNORE);
  return count;
}
static int test_some(MPI_Request* requests, int* indices) {
  int count = 0;
  while (count == 0) MPI_Testsome(kMessages, requests, &count, indices, MPI_STATUSES_IGNORE);
  return count;
}
static int first(const MPI_Request* requests) {
  int at = 0;
  while (requests[at] == MPI_REQUEST_NULL) ++at;
  return at;
}
static int wait_one(MPI_Request* requests, int* indices) {
  indices[0] = first(requests);
  MPI_Wait(&requests[indices[0]], MPI_STATUS_IGNORE);
  return 1;
}
static int test_one(MPI_Request* requests, int* indices) {
  int flag = 0;
  indices[0] = first(requests);
  while (!flag) MPI_Test(&requests[indices[0]], &flag, MPI_STATUS_IGNORE);
  return 1;
}

static void round_of(Finder* find, int first_tag) {
  MPI_Request receives[kMessages], sends[kMessages];
  int indices[kMessages];
  for (int i = 0; i < kMessages; ++i)
    MPI_Irecv(in[i], size_of(i), MPI_BYTE, other, first_tag + i, MPI_COMM_WORLD, &receives[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kMessages; ++i) {
    MPI_Isend(out, size_of(i), MPI_BYTE, other, first_tag + i, MPI_COMM_WORLD, &sends[i]);
    sent(first_tag + i, size_of(i));
    for (int j = 0; j < i; ++j) shared += sends[j] == sends[i];
  }
  for (int done = 0, count; done < kMessages; done += count) {
    count = find(sends, indices);
    for (int k = 0; k < count; ++k) tell("complete", first_tag + indices[k], size_of(indices[k]));
  }
  for (int done = 0, count; done < kMessages; done += count) {
    count = find(receives, indices);
    for (int k = 0; k < count; ++k) tell("received", first_tag + indices[k], size_of(indices[k]));
  }
}

static void receive(int tag, int bytes) {
  MPI_Recv(in[0], bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A message to MPI_PROC_NULL may share its handle with a message to a rank that was started later. */
static void beside_nobody(int tag) {
  MPI_Request nobody, somebody;
  MPI_Isend(out, 8, MPI_BYTE, MPI_PROC_NULL, tag, MPI_COMM_WORLD, &nobody);
  MPI_Isend(out, 16, MPI_BYTE, other, tag, MPI_COMM_WORLD, &somebody);
  sent(tag, 16);
  MPI_Wait(&nobody, MPI_STATUS_IGNORE);
  receive(tag, 16);
  MPI_Wait(&somebody, MPI_STATUS_IGNORE);
  tell("complete", tag, 16);
}

/* No call finds this request complete. */
static void given_up(int tag) {
  MPI_Request request;
  MPI_Isend(out, 8, MPI_BYTE, other, tag, MPI_COMM_WORLD, &request);
  sent(tag, 8);
  MPI_Request_free(&request);
  receive(tag, 8);
  MPI_Irecv(in[1], 8, MPI_BYTE, other, tag + 1, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void persistent(int tag, int rounds) {
  MPI_Request requests[2];
  MPI_Send_init(out, 24, MPI_BYTE, other, tag, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(in[0], 24, MPI_BYTE, other, tag, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* of requests that are not under way */
  for (int i = 0; i < rounds; ++i) {
    MPI_Startall(2, requests);
    sent(tag, 24);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    tell("complete", tag, 24);
    tell("received", tag, 24);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

int main(int count, char** arguments) {
  static Finder* const finders[] = {wait_all,  test_all,  wait_any, test_any,
                                    wait_some, test_some, wait_one, test_one};
  char name[1000];
  MPI_Init(&count, &arguments);
  start_report();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  snprintf(name, sizeof name, "%s.%d", arguments[1], rank);
  log_file = fopen(name, "w");
  for (int i = 0; i < (int)(sizeof finders / sizeof *finders); ++i) round_of(finders[i], 100 * i);
  beside_nobody(1000);
  given_up(1100);
  persistent(1200, 3);
  fprintf(log_file, "shared %d 0\n", shared);
  if (fclose(log_file) != 0 || !write_report(arguments[1], rank, 2)) abort();
  MPI_Finalize();
}
