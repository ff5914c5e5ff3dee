// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/queries.h"

#include "host/mpi/host.h"
#include "sync/locks/families.h"

namespace tombolo::mpi {

namespace {

// Whether loads and stores of this process reach the region.
bool reaches(MpiWindow& window, int rank) {
  if (window.flavor == MPI_WIN_FLAVOR_SHARED || rank == window.rank) return true;
  // Only windows made for it keep the copies of peers' regions in step where memory is not
  // coherent.
  if (window.model == MPI_WIN_SEPARATE) return false;
  return window.extents[rank].bytes == 0 ||
         window.engine().view(static_cast<machine::Home>(rank)) != nullptr;
}

// The lowest rank that has bytes, in reach or not: the same one for all that ask. Or 0.
int lowest_with_bytes(MpiWindow& window) {
  for (int rank = 0; rank < window.size; ++rank)
    if (window.extents[rank].bytes != 0) return rank;
  return 0;
}

}  // namespace

int shared_region(MpiWindow& window, int rank, SharedRegion& region) {
  if (window.dynamic()) return MPI_ERR_RMA_FLAVOR;
  if (rank == MPI_PROC_NULL) rank = lowest_with_bytes(window);
  if (rank < 0 || rank >= window.size) return MPI_ERR_RANK;
  if (!reaches(window, rank)) {
    region = {0, 1, nullptr};
    return MPI_SUCCESS;
  }
  const Extent& peer = window.extents[rank];
  region.bytes = static_cast<MPI_Aint>(peer.bytes);
  region.disp_unit = static_cast<MPI_Aint>(peer.disp_unit);
  const bool apart = window.flavor != MPI_WIN_FLAVOR_SHARED || !window.peers[0].contiguous;
  region.base =
      peer.bytes == 0 && apart ? nullptr : window.engine().view(static_cast<machine::Home>(rank));
  return MPI_SUCCESS;
}

int window_info(MpiWindow& window, MPI_Info* info) {
  const int error = host().Win_get_info(window.handle, info);
  if (error != MPI_SUCCESS) return error;
  const PeerRecord& first = window.peers[0];
  host().Info_set(*info, "tombolo_machine", std::string(name(window.memory->machine().id)).c_str());
  host().Info_set(*info, "tombolo_passive_sync",
                  std::string(sync::lock_family_name(first.locks)).c_str());
  host().Info_set(*info, "tombolo_backoff", first.backoff ? "on" : "off");
  host().Info_set(*info, "tombolo_reader_bias", first.reader_bias ? "on" : "off");
  host().Info_set(*info, "mpi_accumulate_granularity", std::to_string(first.atomic_bytes).c_str());
  return MPI_SUCCESS;
}

std::optional<Attribute> predefined_attribute(MpiWindow& window, int keyval) {
  if (keyval == MPI_WIN_BASE)
    return Attribute{window.base, reinterpret_cast<MPI_Aint>(window.base)};
  if (keyval == MPI_WIN_SIZE) return Attribute{&window.bytes, window.bytes};
  if (keyval == MPI_WIN_DISP_UNIT) return Attribute{&window.disp_unit, window.disp_unit};
  if (keyval == MPI_WIN_CREATE_FLAVOR) return Attribute{&window.flavor, window.flavor};
  if (keyval == MPI_WIN_MODEL) return Attribute{&window.model, window.model};
  return std::nullopt;
}

}  // namespace tombolo::mpi
