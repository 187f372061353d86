"""A fork inside of a `with` block, and per-device settings: which settings the child has."""

from tests.unit.driver.test_fork import run


def test_child_of_a_fork_inside_of_a_stream_block_leaves_it():
    run(
        """
        outer, inner = gt.Stream("host"), gt.Stream("host")
        with gt.stream(outer):
            def work():
                assert gt.current_stream("host") == gt.default_stream("host")
            with gt.stream(inner):
                pid = fork(lambda: None, end=lambda code: None)
            if os.getpid() == main:
                assert gt.current_stream("host") == outer
            else:
                assert gt.current_stream("host").cuda_stream == 0
        assert gt.current_stream("host").cuda_stream == 0
        assert float(gt.sum(gt.ones(10))) == 10
        if os.getpid() != main:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    """.replace("outer, inner", "main = os.getpid()\n        outer, inner", 1)
    )


def test_child_of_a_fork_inside_of_a_pool_block_leaves_it():
    run(
        """
        main, pool = os.getpid(), memory.MemPool("host")
        with memory.use_mem_pool(pool, "host"):
            pid = fork(lambda: gt.ones(4), end=lambda code: None)
        if os.getpid() != main:
            with memory.use_mem_pool(pool, "host"):
                assert float(gt.sum(gt.ones(10))) == 10
            whole()
            sys.exit(7)
        assert os.waitpid(pid, 0)[1] == 7 << 8
        assert pool.use_count() == 1
        whole()
    """
    )


def test_child_caches_as_its_parent_did():
    run(
        """
        from gputensor._alloc.allocator import is_caching
        gt.ones(1)
        other = registry.open_host(capacity=1 << 28)
        memory.caching_allocator_enable(False, other)
        def work():
            assert is_caching(-1) and not is_caching(other)
            gt.ones(4), gt.ones(4, device=registry.device_name(other))
            assert is_caching(-1) and not is_caching(other)
        child(work)
        def enable():
            memory.caching_allocator_enable(True, other)
            gt.ones(4, device=registry.device_name(other))
            assert is_caching(other)
        child(enable)
        def enable_all():
            memory.caching_allocator_enable()
            assert is_caching(other) and is_caching(-1)
        child(enable_all)
        def reopened():
            registry.close_host(other)
            assert is_caching(registry.open_host(capacity=1 << 28))
        child(reopened)
        assert not is_caching(other)
    """
    )
