/* Every rank puts a message into its right neighbour's memory and waits for the one from its left.
 *
 *   cc put.c $(pkg-config --cflags --libs peerway) -o put && peerway run -n 2 -- ./put */
#include <peerway/peerway.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ull

static void check(pw_status status) {
  if (status == PW_OK) return;
  fprintf(stderr, "%s\n", pw_error_message());
  exit(1);
}

/* What a rank sends to the others: the keys of its region and of its signal. */
struct keys {
  size_t region_length, signal_length;
  char region[PW_KEY_MAX], signal[PW_KEY_MAX];
};

int main(void) {
  pw_team* team;
  pw_context* context;
  check(pw_team_from_launcher(&team));
  check(pw_context_create(team, &context));
  const int rank = pw_team_rank(team), size = pw_team_size(team);
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;

  pw_region* region; /* two halves: what I send, what I receive */
  pw_signal* arrived;
  check(pw_region_allocate(context, (pw_device){.kind = PW_HOST}, 128, &region));
  check(pw_signal_create(context, previous, (pw_device){.kind = PW_HOST}, &arrived));

  struct keys mine = {0}, *all = calloc((size_t)size, sizeof mine);
  check(pw_region_key(region, mine.region, PW_KEY_MAX, &mine.region_length));
  check(pw_signal_key(arrived, mine.signal, PW_KEY_MAX, &mine.signal_length));
  check(pw_team_all_gather(team, all, &mine, sizeof mine, 10 * SECOND));

  pw_remote *target, *their_signal;
  check(pw_remote_import(context, all[next].region, all[next].region_length, &target));
  check(pw_remote_import(context, all[next].signal, all[next].signal_length, &their_signal));

  char *sent = pw_region_address(region), *received = sent + 64, expected[64];
  snprintf(sent, 64, "hello from rank %d", rank);
  snprintf(expected, 64, "hello from rank %d", previous);
  const pw_notification notification = {.size = sizeof notification, .signal = their_signal, .by = 1};
  check(pw_put(context, target, 64, region, 0, 64, &notification));
  check(pw_signal_wait(arrived, 1, 10 * SECOND));
  const int right_message = strcmp(received, expected) == 0;
  printf("rank %d received \"%s\"%s\n", rank, received, right_message ? "" : ": that is wrong");

  check(pw_flush(context, PW_ANY_RANK, 10 * SECOND));
  check(pw_team_barrier(team, 10 * SECOND)); /* nobody frees what a neighbour still uses */
  check(pw_context_free(context));
  check(pw_team_free(team));
  free(all);
  return right_message ? 0 : 1;
}
