/* Windows of one-sided communication; a part of mpi.c. A window is named after its communicator, whose
 * members count its windows alike. */

static void pw_name_window(MPI_Win win, pw_group* parent) {
  MPI_Group members;
  PMPI_Win_get_group(win, &members);
  pw_group* group = pw_new_group(members);
  PMPI_Group_free(&members);
  const int number = __atomic_add_fetch(&parent->windows, 1, __ATOMIC_RELAXED);
  if (strcmp(parent->name, "world") == 0)
    snprintf(group->name, sizeof group->name, "window %d", number);
  else
    snprintf(group->name, sizeof group->name, "window %d of %.40s", number, parent->name);
  PMPI_Win_set_attr(win, pw_key_of_win, group);
}

static pw_group* pw_group_of_win(MPI_Win win) {
  static pw_group unseen = {.name = "unknown"}; /* made by a call that this MPI's header does not declare */
  void* known = NULL;
  int has_group = 0;
  if (!pw_ready || win == MPI_WIN_NULL) return NULL;
  PMPI_Win_get_attr(win, pw_key_of_win, &known, &has_group);
  if (has_group) return (pw_group*)known;
  pw_name_window(win, &unseen);
  PMPI_Win_get_attr(win, pw_key_of_win, &known, &has_group);
  return (pw_group*)known;
}

static void pw_window_born(const pw_call* call, MPI_Comm comm, const MPI_Win* win) {
  if (!pw_ready || pw_inside > 1) return;
  pw_name_window(*win, pw_group_of(comm));
  pw_moment(call, PW_TRACE_WINDOW_MADE, "window made", pw_group_of_win(*win));
}
