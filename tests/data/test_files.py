"""Files appear whole or not at all, keep their links and rights, and leave nothing behind."""

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from guardband.data import files
from guardband.data.files import locked_folder, need_room, remove_unfinished, write_whole

IS_ROOT = os.geteuid() == 0
OTHER_USER = 12345


def write_text(text):
    return lambda part: part.write_text(text)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_on_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    done = []
    sync, put = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("sync"), sync(handle)))
    monkeypatch.setattr(os, "replace", lambda part, path: (done.append("replace"), put(part, path)))
    write_whole(tmp_path / "a", write_text("all"))
    assert done == ["sync", "replace", "sync"]  # the file, then its name in the folder
    assert (tmp_path / "a").read_text() == "all"


def test_a_failure_leaves_what_was_there(tmp_path):
    (tmp_path / "a").write_text("old")

    def fail(part):
        part.write_text("ne")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(tmp_path / "a", fail)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("kind", [OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EFBIG, "Too large")])
def test_no_room_is_a_sentence(tmp_path, kind):
    (tmp_path / "a").write_text("old")

    def fail(part):
        raise kind

    with pytest.raises(
        OSError, match=r"a cannot be written: .*\. Free some space, or write to another disk\.$"
    ) as said:
        write_whole(tmp_path / "a", fail)
    assert said.value.errno == kind.errno
    assert (tmp_path / "a").read_text() == "old"


def test_no_room_for_a_new_name_is_the_same_sentence(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(
        OSError, match=r"a cannot be written: No space .*\. Free some space, or write to another disk\.$"
    ):
        write_whole(tmp_path / "a", write_text("new"))
    assert names(tmp_path) == []


def test_a_file_that_grows_too_large_leaves_the_old_one(tmp_path):
    code = (
        "import resource, pathlib\nfrom guardband.data.files import write_whole\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_whole(pathlib.Path('a'), lambda part: part.write_bytes(bytes(5000)))\n"
        "except OSError as error: print(error)"
    )
    (tmp_path / "a").write_text("old")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("a cannot be written: File too large."), done
    assert (names(tmp_path), (tmp_path / "a").read_text()) == (["a"], "old")


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    target, link, far = tmp_path / "there" / "a", tmp_path / "link", tmp_path / "far"
    link.symlink_to(Path("there") / "a")
    far.symlink_to(link)
    for i, path in enumerate((link, far, link)):  # the first time it leads nowhere yet
        write_whole(path, write_text(str(i)))
        assert target.read_text() == str(i)
        assert link.is_symlink()
        assert far.is_symlink()
    assert names(tmp_path / "there") == ["a"]


def test_links_that_lead_to_no_file_are_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    for name, target in (("loop", "loop"), ("one", "two"), ("two", "one"), ("up", "folder"), ("lost", "no/a")):
        (tmp_path / name).symlink_to(target)
    before = names(tmp_path)
    for name, words in (
        ("loop", "leads to itself"),
        ("one", "leads to itself"),
        ("up", "is a folder"),
        ("folder", "is a folder"),
        ("lost", "whose folder is missing"),
    ):
        with pytest.raises(OSError, match=words):
            write_whole(tmp_path / name, write_text("new"))
    assert names(tmp_path) == before


@pytest.mark.skipif(not IS_ROOT, reason="only root can make a file of another user")
def test_a_link_of_another_user_in_a_shared_folder_is_not_followed(tmp_path):
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.mkdir()
    shared.chmod(0o1777)
    own.write_text("mine")
    (shared / "out").symlink_to(own)
    os.chown(shared / "out", OTHER_USER, OTHER_USER, follow_symlinks=False)
    with pytest.raises(PermissionError, match="a link of another user in a shared folder"):
        write_whole(shared / "out", write_text("new"))
    assert own.read_text() == "mine"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o400, 0o777])
def test_rights_are_kept_and_never_wider_on_the_way(tmp_path, mode):
    path, seen = tmp_path / "a", []
    path.write_text("old")
    path.chmod(mode)
    write_whole(path, lambda part: (seen.append(mode_of(part)), part.write_text("new")))
    assert mode_of(path) == mode
    assert seen == [mode | 0o600]
    assert path.read_text() == "new"


def test_a_writer_that_makes_a_file_of_its_own_keeps_the_rights_too(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o600)
    write_whole(path, lambda part: (part.unlink(), part.write_text("new")))
    assert mode_of(path) == 0o600


def test_a_new_file_has_the_rights_of_any_new_file(tmp_path):
    (tmp_path / "like").write_text("")
    write_whole(tmp_path / "a", write_text("new"))
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "like")


@pytest.mark.skipif(not IS_ROOT, reason="only root can make a file of another user")
def test_owner_and_group_are_kept(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_text("old")
    os.chown(path, OTHER_USER, OTHER_USER)
    path.chmod(0o660)
    write_whole(path, write_text("new"))
    assert (path.stat().st_uid, path.stat().st_gid, mode_of(path)) == (OTHER_USER, OTHER_USER, 0o660)

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "chown", refuse)
    write_whole(path, write_text("new"))
    assert mode_of(path) == 0o600  # our group is not the one that might read it


def test_devices_and_pipes_are_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for path in (tmp_path / "pipe", tmp_path / "link"):
        for attempt in (lambda path=path: write_whole(path, write_text("new")), lambda path=path: need_room(path)):
            with pytest.raises(OSError, match="is a device or a pipe, not a file"):
                attempt()
    assert names(tmp_path) == ["link", "pipe"]
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


KILLED = (
    "import os, pathlib, sys\nfrom guardband.data.files import write_whole\n"
    "write_whole(pathlib.Path(sys.argv[1]), lambda part: (part.write_text('half'), os.kill(os.getpid(), 9)))"
)


def test_what_a_killed_process_left_is_swept_by_the_next_one(tmp_path):
    for name in ("a", "a.b", "n" * 255):
        subprocess.run([sys.executable, "-c", KILLED, name], cwd=tmp_path)
    assert len(names(tmp_path)) == 3
    own = ".a.b.part", ".a.0123456789abcdef.part.csv"
    for name in own:  # files of other people
        (tmp_path / name).write_text("")
    write_whole(tmp_path / "a", write_text("new"))
    assert len([name for name in names(tmp_path) if name.endswith(".part") and name not in own]) == 2
    need_room(tmp_path / "a.b")
    need_room(tmp_path / ("n" * 255))
    assert names(tmp_path) == sorted([*own, "a"])


def test_a_part_file_whose_writer_lives_is_not_swept(tmp_path):
    path, may_end, has_begun = tmp_path / "a", threading.Event(), threading.Event()

    def slow(part):
        part.write_text("slow")
        has_begun.set()
        assert may_end.wait(60)

    slow_one = threading.Thread(target=write_whole, args=(path, slow))
    slow_one.start()
    assert has_begun.wait(60)
    write_whole(path, write_text("quick"))
    code = "import pathlib; from guardband.data.files import need_room; need_room(pathlib.Path('a'))"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert len(names(tmp_path)) == 2
    may_end.set()
    slow_one.join(60)
    assert (names(tmp_path), path.read_text()) == (["a"], "slow")


def test_a_part_file_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    lock, times = files._lock, []

    def late(handle):
        times.append(handle)
        if len(times) == 1:
            (part,) = tmp_path.glob(".a.*.part")
            part.unlink()
        return lock(handle)

    monkeypatch.setattr(files, "_lock", late)
    write_whole(tmp_path / "a", write_text("new"))
    assert len(times) == 2
    assert (names(tmp_path), (tmp_path / "a").read_text()) == (["a"], "new")


def test_one_whole_file_within_another_is_put_in_place_once(tmp_path):
    write_whole(tmp_path / "a", lambda part: write_whole(part, write_text("new")))
    assert (names(tmp_path), (tmp_path / "a").read_text()) == (["a"], "new")


def test_a_program_that_ends_removes_what_it_has_begun(tmp_path):
    def end(part):
        part.write_text("half")
        files._unfinished[tmp_path / "of another process"] = os.getpid() + 1
        remove_unfinished()
        assert names(tmp_path) == []
        assert files._unfinished.pop(tmp_path / "of another process")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a", end)
    assert names(tmp_path) == []
    assert not files._unfinished


def test_a_folder_is_locked_against_another_process_until_it_is_let_go(tmp_path):
    code = (
        "import pathlib\nfrom guardband.data.files import locked_folder\n"
        "with locked_folder(pathlib.Path('.'), waits=False) as is_held: print(is_held)"
    )

    def other():
        return subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True).stdout

    with locked_folder(tmp_path) as is_held:
        assert is_held
        assert other() == "False\n"
    assert other() == "True\n"


@pytest.mark.parametrize("reason", ["no locks on this system", "no locks on this disk", "not to be read"])
def test_where_a_folder_cannot_be_locked_everybody_is_let_in(tmp_path, monkeypatch, reason):
    def fail(*_):
        raise OSError(errno.ENOLCK if "disk" in reason else errno.EACCES, reason)

    if "system" in reason:
        monkeypatch.setattr(files, "fcntl", None)
    elif "disk" in reason:
        monkeypatch.setattr(files.fcntl, "flock", fail)
    else:
        monkeypatch.setattr(os, "open", fail)
    with locked_folder(tmp_path, waits=False) as first, locked_folder(tmp_path, waits=False) as second:
        assert first
        assert second
