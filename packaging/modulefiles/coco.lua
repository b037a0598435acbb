-- SPDX-License-Identifier: BSD-3-Clause
-- A modulefile of Lmod's. It finds libcoco from where it lies itself: DATADIR/modulefiles/coco/VERSION.lua of an installed tree.
local prefix = myFileName()
for _ = 1, @folders_to_modulefile@ + 1 do prefix = prefix:match("^(.*)/") or "" end
local library = prefix .. "/@libdir@/coco/libcoco.so"

whatis("Name: libcoco")
whatis("Version: @version@")
whatis("Description: makes the data-moving collectives of MPI programs fast")
help("Every MPI program that this shell starts from now on runs with libcoco " ..
     "(LD_PRELOAD). COCO_DISABLE=1 switches it off for a program; coco info tells more.")
conflict("coco")

if mode() == "load" then
  if not isFile(library) then
    LmodError("there is no ", library, ": this modulefile must lie in the tree that libcoco was installed to")
  elseif library:find("[%s:]") then
    LmodError(library, ": no library whose path has a blank or a colon can be preloaded")
  end
end
prepend_path("LD_PRELOAD", library)
if prefix ~= "/usr" then
  prepend_path("PATH", pathJoin(prefix, "bin"))
  prepend_path("PKG_CONFIG_PATH", pathJoin(prefix, "@libdir@", "pkgconfig"))
  prepend_path("CMAKE_PREFIX_PATH", prefix)
end
