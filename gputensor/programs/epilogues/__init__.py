"""What follows a convolution or a product, done by it; images with their channels as neighbours."""
