"""Functions of one example applied to whole batches: ``vmap`` and its batching rules.

A :class:`~.batched.Batched` tensor looks like one example and carries the batch. While ``vmap`` runs a function, every op call
that meets one is answered by its batching rule (:mod:`.rules`): the same op, or a few, on the tensors with the batch axis in
front. Those calls are ordinary ones. So what is recorded, planned or compiled is what they do, gradients are those of the
public pairs, and a transform inside ``vmap`` walks the same graph as one outside.
"""
