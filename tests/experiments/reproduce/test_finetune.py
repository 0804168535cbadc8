import torch

from guardband.experiments.reproduce.finetune import HandNetwork, moved


def test_images_are_moved_each_in_its_own_way_and_stay_images():
    torch.manual_seed(0)
    image = torch.zeros(1, 1, 32, 32)
    image[:, :, 8:24, 4:14] = 200
    many = moved(image.expand(6, -1, -1, -1))
    assert many.shape == (6, 1, 32, 32)
    assert 0 <= many.min() <= many.max() < 200.01
    assert len({round(float(one.sum()), 3) for one in many}) == 6
    left = many[:, :, :, :16].sum(dim=(1, 2, 3)) > many[:, :, :, 16:].sum(dim=(1, 2, 3))
    assert left.any()
    assert not left.all()  # some are mirrored


def test_the_network_changes_images_only_while_it_trains():
    torch.manual_seed(0)
    network = HandNetwork(8)
    images, male = torch.randint(0, 255, (3, 1, 64, 64), dtype=torch.uint8), torch.ones(3, 1)
    network.eval()
    assert torch.equal(network(images, male), network(images, male))
    assert not torch.equal(network(images, male), network(images, 0 * male))
    assert network(images, male).shape == (3, 3)
    assert (network(images, male).diff(dim=-1) >= 0).all()
    network.train()
    assert not torch.equal(network(images, male), network(images, male))
    assert all(p.requires_grad for p in network.parameters())
