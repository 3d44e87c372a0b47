// The contents of a pw_team. Contexts share the team: this rank leaves it once they and the handle are gone.
#pragma once

#include <memory>

#include "peerway/peerway.h"
#include "team/team.h"

struct pw_team {
  std::shared_ptr<pw::Team> team;
};
